//! Layers with experts of NeMo Automodel's own modules compared with recorded runs (`tests/record/automodel_experts.py`), to
//! the byte. There one rank holds all experts; here two do, each of which receives every token once, so that maps of half the
//! experts have twice the rows.

use serde_json::Value;
use shardscope::estimate::memory;
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Symbols, exchange_buffer, layer_operators};
use shardscope::plan::Plan;
use shardscope::units::Bytes;

use super::drafts::{int, kept};

const RECORDED: &str = include_str!("../data/activations/automodel_experts.jsonl");

fn recorded() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
}

/// Layers for which there is a plan: not GLM's, whose experts are weighted behind their second product (which keeps its
/// result) and whose gate multiplies in 16 bits.
fn cases() -> impl Iterator<Item = Value> {
    recorded().filter(|case| case["arch"].as_str().is_some_and(|arch| !arch.starts_with("glm4_moe")))
}

fn plan(case: &Value, more: &[(&str, &str)]) -> Plan {
    let mut set: Vec<(String, String)> = [
        ("software", "automodel"),
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("gpus_per_node", "2"),
        ("expert_model_parallel_size", "2"),
        ("moe_token_dispatcher_type", "flex"),
        ("num_layers", "3"),
        ("swiglu", "true"),
        ("normalization", "RMSNorm"),
        ("untie_embeddings_and_output_weights", "true"),
        ("bf16", "true"),
        ("autocast", "none"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "2"),
        ("loss_kind", "torch"),
        ("attn_implementation", "flash_attention_2"),
        ("padding_mask", "false"),
        ("use_cache", "false"),
        ("optimizer", "adam"),
        ("normalized_routing", "true"),
        ("global_batch_size", "4"),
        ("micro_batch_size", "1"),
        ("train_type", "full"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let mut put = |name: &str, value: String| {
        set.retain(|(other, _)| other != name);
        set.push((name.to_owned(), value));
    };
    for (name, key) in [
        ("hidden_size", "h"),
        ("ffn_hidden_size", "f"),
        ("num_attention_heads", "a"),
        ("seq_length", "s"),
        ("max_position_embeddings", "s"),
        ("vocab_size", "V"),
        ("micro_batch_size", "b"),
        ("num_experts", "E"),
        ("moe_router_topk", "topk"),
        ("moe_ffn_hidden_size", "fm"),
    ] {
        put(name, int(case, key).to_string());
    }
    if case["arch"] == "deepseek_v3" {
        for (name, key) in [
            ("kv_lora_rank", "kl"),
            ("qk_head_dim", "dn"),
            ("qk_pos_emb_head_dim", "dr"),
            ("v_head_dim", "dv"),
        ] {
            put(name, int(case, key).to_string());
        }
        put("multi_latent_attention", "true".to_owned());
        put("qk_layernorm", "true".to_owned());
        if case["ql"].is_u64() {
            put("q_lora_rank", int(case, "ql").to_string());
        }
        put("moe_shared_expert_intermediate_size", (int(case, "shared") * int(case, "fm")).to_string());
        put("moe_layer_freq", "[0,1,1]".to_owned());
        put("module_variants", "fp32_sigmoid_router".to_owned());
    } else {
        put("group_query_attention", "true".to_owned());
        put("num_query_groups", int(case, "k").to_string());
        put("kv_channels", int(case, "d").to_string());
        put("qk_layernorm", "true".to_owned());
        put("moe_router_load_balancing_type", "aux_loss".to_owned());
        put("moe_aux_loss_coeff", case["aux"].to_string());
    }
    put("moe_balanced_gate", case["fake"].to_string());
    for (name, value) in more {
        put(name, (*value).to_owned());
    }
    let resolution = resolve(&[], &set);
    let why = (resolution.diagnostics, resolution.not_modelled);
    resolution.plan.unwrap_or_else(|| panic!("{}: {why:?}", case["id"]))
}

#[test]
fn layers_keep_what_was_recorded() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for case in cases() {
        let plan = plan(&case, &[]);
        let x = Symbols::new(&plan);
        let recorded = |parts: &[&str]| -> u64 {
            parts.iter().map(|part| case["kept"][*part].as_u64().unwrap_or(0)).sum()
        };
        let mut check = |what: &str, ours: u64, recorded: u64| {
            compared += 1;
            if ours != recorded {
                wrong.push(format!("{} {what}: {recorded} recorded, {ours} here", case["id"]));
            }
        };
        check("first norm", kept(&x, &[Operator::InputNorm]), recorded(&["input_layernorm"]));
        check("second norm", kept(&x, &[Operator::PreExpertsNorm]), recorded(&["post_attention_layernorm"]));
        // Of two ranks each holds DeepEP's handle (5 bytes for each token and rank, 4 for each received token), maps of
        // half the experts for what it receives, all with one column more, and half of the experts' ends. A gate
        // without weights sends a token to one of them.
        let (received, all) = (x.n * x.moe.fan, x.moe.experts);
        assert_eq!(x.moe.fan, if case["fake"] == true { 1 } else { 2 });
        let maps = |tokens: u64, experts: u64| 4 * tokens * (experts + 2 * experts + 1) + 4 * experts;
        let handle = 10 * x.n + 4 * received;
        let ours = kept(&x, &[Operator::Experts]) - handle - maps(received, all / 2) + maps(x.n, all);
        check("experts", ours, recorded(&["gate", "experts", "mlp"]));
        let attention = recorded(&["self_attn"]);
        if case["arch"] == "deepseek_v3" {
            // The processor has no kernel for values of another width than keys: it kept scaled queries and keys, the
            // softmax and the values in fp32, and the rotation's complex numbers, which all layers share.
            let (a, dn, dr, dv) = (x.a, x.latent.plain, x.latent.rotary, x.latent.value);
            let there = 4 * (2 * x.n * a * (dn + dr) + x.b * a * x.s * x.s + x.n * a * dv) + 4 * x.n * dr;
            let kernel = 2 * (2 * x.n * a * (dn + dr) + x.n * a * dv) + 4 * x.n * a + 16;
            check("attention", kept(&x, &[Operator::LatentAttention]) - kernel, attention - there);
        } else {
            // PyTorch's kernel has heads before tokens, so that the output is copied for the projection; flash-attn keeps
            // the random number generator's state too.
            let copy = 2 * x.n * x.a * x.d;
            check("attention", kept(&x, &[Operator::SelfAttention]) + copy - 16, attention);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 16 * 4);
}

#[test]
fn a_recomputed_layer_keeps_its_input_and_what_its_router_chose() {
    for case in cases() {
        let plan = plan(&case, &[("gradient_checkpointing", "true")]);
        let x = Symbols::new(&plan);
        let product = if case["arch"] == "deepseek_v3" { 4 } else { 2 };
        let chosen = product * x.moe.experts + 12 * x.moe.topk;
        let layer = x.n * (2 * x.h + if case["fake"] == true { 0 } else { chosen });
        let chunk = &plan.layout().stages.stages[0].chunks[0];
        let table = if case["arch"] == "deepseek_v3" { 4 * x.n * x.latent.rotary } else { 4 * x.n * x.d };
        let ends = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        let all = shardscope::estimate::kept_by_chunk(&plan, chunk);
        assert_eq!(all.get(), 3 * layer + table + ends, "{}", case["id"]);
        assert!(layer_operators(&x, plan.model().layer_kind(1)).contains(&Operator::Experts));
    }
}

#[test]
fn a_loss_over_16_bit_logits_keeps_what_was_recorded() {
    let case = cases().next().expect("a case");
    for loss in recorded().filter(|case| case["arch"].is_null()) {
        let (b, s) = (int(&loss, "b"), int(&loss, "s"));
        let sizes = [("micro_batch_size", b.to_string()), ("seq_length", s.to_string())];
        let mut more: Vec<(&str, &str)> = sizes.iter().map(|(name, value)| (*name, value.as_str())).collect();
        more.extend([("loss_kind", "torch_narrow"), ("max_position_embeddings", "128")]);
        let plan = plan(&case, &more);
        let x = Symbols::new(&plan);
        // Beside the loss: the output layer's input, and what Automodel divides by; labels that come moved have no
        // token that pads those of a single sequence.
        let beyond = 2 * x.n * x.h + 8 + 8 * u64::from(b == 1);
        assert_eq!(
            kept(&x, &[Operator::OutputLayer]) - beyond,
            loss["kept"]["loss"].as_u64().expect("bytes")
        );
    }
}

/// FSDP shards what experts do not have to themselves, and keeps it gathered; experts of one rank stay as they are.
#[test]
fn experts_of_one_rank_are_held_once_and_the_rest_as_shards_and_gathered() {
    let case = cases().next().expect("a case");
    let held = |set: &[(&str, &str)]| {
        let plan = plan(&case, set);
        let of = |rank: &shardscope::estimate::RankMemory| rank.totals.parameters;
        let first = &memory(&plan).ranks[0];
        of(first)
    };
    let [h, fm, experts] = ["h", "fm", "E"].map(|key| int(&case, key));
    let routed = 3 * experts * 3 * h * fm;
    let plan_of = plan(&case, &[]);
    let all = shardscope::estimate::parameters(&plan_of).total.get();
    let rest = all - routed;
    // Two bytes of each; half of the experts, and of the rest a half and the whole.
    assert_eq!(held(&[]), Bytes::new(2 * (routed / 2 + rest / 2 + rest)));
    // Over twice the ranks each half of the experts has two shards.
    let wide = held(&[("gpus_per_node", "4"), ("global_batch_size", "8")]);
    assert_eq!(wide, Bytes::new(2 * (routed / 4 + routed / 2 + rest / 4 + rest)));
}

/// `Config.get_nvl_buffer_size_hint(2 * 2048, 8)` with 20 multiprocessors and 256 tokens, and the workspace.
#[test]
fn the_buffer_of_the_exchange_is_what_deepep_asks_for() {
    let case = cases().next().expect("a case");
    let wide = plan(&case, &[("hidden_size", "2048")]);
    let two: u64 = 10 * 2 * (5 * 4 + 256 * (4096 + 8 + 128 * 16));
    assert_eq!(exchange_buffer(&Symbols::new(&wide)).get(), two.next_multiple_of(128) + (32 << 20));
    let shown = memory(&wide).ranks[0].breakdown.child("framework").map(|tree| tree.value().get());
    assert!(shown > Some(two));
}
