//! One of several tensor-parallel ranks under NeMo Automodel compared with recorded runs of its own modules and those
//! of transformers, with its loss over the logits of all ranks and with its adapters: what the rank keeps, holds and
//! sends.

use std::collections::BTreeMap;

use serde_json::Value;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::estimate::{memory, parameters};
use shardscope::launch::resolve;
use shardscope::operators::{Message, Operator, Pass, Symbols, layer_operators};
use shardscope::plan::{Plan, Recompute};

use super::drafts::{flag, int, kept};
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/dtensor_automodel.jsonl");
const ENDS: [Operator; 3] = [Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer];
const PROJECTIONS: &str = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj";

fn set(case: &Value) -> Vec<(String, String)> {
    let mut set: Vec<(&str, String)> = [
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("swiglu", "true"),
        ("group_query_attention", "true"),
        ("normalization", "RMSNorm"),
        ("untie_embeddings_and_output_weights", "true"),
        ("bf16", "true"),
        ("autocast", "none"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "3"),
        ("dtensor_plan", "true"),
        ("loss_kind", "torch"),
        ("attn_implementation", "sdpa"),
        ("padding_mask", "false"),
        ("use_cache", "false"),
        ("optimizer", "adam"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .to_vec();
    for (name, key) in [
        ("gpus_per_node", "tp"),
        ("tensor_model_parallel_size", "tp"),
        ("num_layers", "layers"),
        ("hidden_size", "h"),
        ("ffn_hidden_size", "f"),
        ("num_attention_heads", "a"),
        ("num_query_groups", "k"),
        ("kv_channels", "d"),
        ("seq_length", "s"),
        ("max_position_embeddings", "s"),
        ("vocab_size", "V"),
        ("micro_batch_size", "b"),
        ("global_batch_size", "b"),
    ] {
        set.push((name, int(case, key).to_string()));
    }
    let own = flag(case, "own");
    set.push(("software", if own { "automodel" } else { "hf_transformers" }.to_owned()));
    set.push(("sequence_parallel", flag(case, "sp").to_string()));
    set.push(("gradient_checkpointing", (case["gc"] == "full").to_string()));
    set.push(("qk_layernorm", (case["arch"] == "qwen3").to_string()));
    set.push(("add_qkv_bias", (case["arch"] == "qwen2").to_string()));
    if case["gc"] == "modules" {
        set.push(("recompute_granularity", "selective".to_owned()));
        set.push(("recompute_modules", "self_attn mlp layernorm".to_owned()));
    }
    if case["train"] == "full" {
        set.push(("train_type", "full".to_owned()));
    } else {
        set.push(("lora_rank", int(case, "rank").to_string()));
        let adapters =
            [("train_type", "lora"), ("lora_target_modules", PROJECTIONS), ("adapter_dtype", "bf16")];
        set.extend(adapters.map(|(name, value)| (name, value.to_owned())));
    }
    set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn plan(case: &Value) -> Plan {
    let resolution = resolve(&[], &set(case));
    let why = (resolution.diagnostics, resolution.not_modelled);
    resolution.plan.unwrap_or_else(|| panic!("{}: {why:?}", case["id"]))
}

/// The recorded runs for which there is a plan: there is none for adapters on modules that are recomputed one by one,
/// nor for a sequence that is sharded before Automodel's own modules.
fn cases() -> impl Iterator<Item = Value> {
    let all = RECORDED.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    all.filter(|case| !is_stopped(case))
}

fn is_stopped(case: &Value) -> bool {
    let own = flag(case, "own");
    own && (flag(case, "sp") || case["gc"] == "modules" && case["train"] != "full")
}

#[test]
fn a_rank_keeps_what_was_recorded() {
    let (mut layers, mut wrong) = (0, Vec::new());
    for case in cases() {
        let plan = plan(&case);
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let whole = !matches!(plan.recipe().recompute, Recompute::None | Recompute::Selective(_));
        for index in 0..plan.model().num_layers {
            let own = if index == 0 { x.in_first_trained_layer() } else { Symbols::new(&plan) };
            let ours = if whole { x.s_local * x.h * x.width } else { kept(&own, &operators) };
            let recorded = if case["gc"] == "modules" {
                case["held"][usize::try_from(index).expect("a layer")].as_u64().expect("bytes")
            } else {
                int(&case["kept"], &format!("layer{index}"))
            };
            if ours != recorded {
                wrong.push(format!("{} {index}: {recorded} recorded, {ours} here", case["id"]));
            }
            layers += 1;
        }
        if case["gc"].is_null() {
            assert_eq!(2 * x.s * x.rotated * x.width, int(&case["kept"], "shared"), "{}", case["id"]);
        }
        let (ours, recorded) = (kept(&x, &ENDS), int(&case["kept"], "outside"));
        if ours != recorded {
            wrong.push(format!("{} outside: {recorded} recorded, {ours} here", case["id"]));
        }
        for saved in operators.iter().chain(&ENDS).flat_map(|operator| operator.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}: {}", case["id"], saved.name);
        }
        for tensor in ENDS.iter().chain(&operators).flat_map(|operator| operator.transients(&x)) {
            for tensor in tensor.tensors {
                let value = evaluate(tensor.formula.expression, &|name| x.value(name));
                assert_eq!(tensor.bytes.get() as f64, value, "{}: {}", case["id"], tensor.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(layers, LAYERS);
}

/// Layers in the recorded runs that have a plan.
const LAYERS: u64 = 270;

/// Bytes of a temporary tensor of this name in all moments of an operator's backward.
fn passing(x: &Symbols<'_>, operator: Operator, name: &str) -> u64 {
    let moments = operator.transients(x);
    let tensors = moments.iter().flat_map(|moment| &moment.tensors).filter(|tensor| tensor.name == name);
    tensors.map(|tensor| tensor.bytes.get()).sum()
}

#[test]
fn a_rank_holds_what_was_recorded() {
    for case in cases() {
        let plan = plan(&case);
        let (trained, frozen) = (int(&case, "trained_params"), int(&case, "frozen_params"));
        let rank = &parameters(&plan).ranks[0];
        assert_eq!([rank.trained.get(), rank.count.get()], [trained, trained + frozen], "{}", case["id"]);
        let x = Symbols::new(&plan);
        // DTensor gathers two gradients: the word embedding's rows, and the columns of each row-parallel layer's
        // lora_B.
        let others = ["adapter gradient of other ranks' columns"; 2];
        let of_layer: u64 = [Operator::SelfAttention, Operator::Mlp]
            .into_iter()
            .zip(others)
            .map(|(operator, name)| passing(&x, operator, name))
            .sum();
        let embedding = if case["train"] == "full" { x.v * x.h } else { 0 };
        let words = passing(&x, Operator::Embedding, "word embedding gradient");
        let gradients = 2 * (trained - embedding) + words + plan.model().num_layers * of_layer;
        assert_eq!(gradients, int(&case, "grad_bytes"), "{}", case["id"]);
        let totals = memory(&plan).ranks[0].totals;
        let held = int(&case, "trained_param_bytes") + int(&case, "frozen_param_bytes");
        assert_eq!(totals.parameters.get(), held, "{}", case["id"]);
        assert_eq!(totals.optimizer.get(), int(&case, "adamw_moment_bytes"), "{}", case["id"]);
    }
}

/// Messages of all layers and of the modules around them, by kind and bytes. Recomputation repeats those of the forward
/// pass that are marked for it.
fn sent(plan: &Plan, asked: Pass) -> BTreeMap<String, u64> {
    let x = Symbols::new(plan);
    let recompute = &plan.recipe().recompute;
    let mut out = BTreeMap::new();
    let mut add = |message: &Message| {
        let alone = message.modules.iter().any(|module| recompute.recomputes(*module));
        let repeated = (alone || recompute.is_whole() && message.in_layer) && message.pass == Pass::Forward;
        let times = u64::from(message.pass == asked) + u64::from(repeated && asked == Pass::Backward);
        if message.calls * times > 0 {
            let name = format!("{} {}", message.collective.name(), message.bytes().get());
            *out.entry(name).or_insert(0) += message.calls * times;
        }
    };
    for index in 0..plan.model().num_layers {
        let own = if index == 0 { x.in_first_trained_layer() } else { x };
        for operator in layer_operators(&own, plan.model().layer_kind(0)) {
            operator.messages(&own).iter().for_each(&mut add);
        }
    }
    ENDS.iter().flat_map(|operator| operator.messages(&x)).for_each(|message| add(&message));
    out
}

#[test]
fn a_rank_sends_what_was_recorded() {
    let mut wrong = Vec::new();
    for case in cases() {
        let plan = plan(&case);
        for (pass, name) in [(Pass::Forward, "forward"), (Pass::Backward, "backward")] {
            let recorded: BTreeMap<String, u64> =
                serde_json::from_value(case["sent"][name].clone()).expect("counts");
            let ours = sent(&plan, pass);
            if ours != recorded {
                wrong.push(format!("{} {name}: {recorded:?} recorded, {ours:?} here", case["id"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first layer's queries, keys and values read an input that needs no gradient: the step's ledger has as many calls
/// as its layers.
#[test]
fn the_step_sends_what_its_layers_send() {
    for case in cases() {
        let plan = plan(&case);
        let traffic = traffic(&plan);
        let ledger = traffic.dimension(Parallelism::Tensor).expect("tensor ranks");
        let counted: u64 = ledger.operations.iter().map(|operation| operation.per_micro_batch[0]).sum();
        let recorded: u64 = ["forward", "backward"]
            .into_iter()
            .flat_map(|pass| case["sent"][pass].as_object().expect("counts").values())
            .map(|calls| calls.as_u64().expect("calls"))
            .sum();
        assert_eq!(counted, recorded, "{}", case["id"]);
    }
}

/// Between micro-batches the columns of row-parallel layers' lora_B are held unsharded on each tensor rank, in the
/// reduction format.
#[test]
fn the_adapters_columns_wait_whole() {
    let case = cases().find(|case| case["train"] == "lora-all").expect("adapters");
    let with = |more: &[(&str, &str)]| {
        let mut set = set(&case);
        set.retain(|(name, _)| !more.iter().any(|(own, _)| own == name));
        set.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        memory(&resolve(&[], &set).plan.expect("a plan")).ranks[0].totals.peak_allocated.get()
    };
    let four = [("gpus_per_node", "4"), ("global_batch_size", "4"), ("reduce_dtype", "fp32")];
    let deferred = with(&[&four[..], &[("defer_reduction", "true")]].concat());
    let at_once = with(&four);
    // Two such layers in each of three, of 8 columns of which 4 belong to another rank, and all trained weights on two
    // ranks that share them.
    let trained = int(&case, "trained_params");
    assert!(deferred - at_once >= 4 * (3 * 2 * 128 * 4), "{deferred} {at_once}");
    assert!(deferred - at_once <= 4 * (3 * 2 * 128 * 4 + trained), "{deferred} {at_once}");
}
