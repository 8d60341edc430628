//! Adapters, frozen parts and quantized weights: bytes, arithmetic and advice compared with figures computed by hand.

use shardscope::advice::advised;
use shardscope::estimate::{flops, memory, parameters};
use shardscope::launch::{Resolution, resolve};
use shardscope::plan::Plan;
use shardscope::report::document;
use shardscope::source::Source;
use shardscope::units::Bytes;

/// Llama-like: width 1024, 16 heads of 64, 4 key/value heads, MLP 2816, 8 layers.
const WIDTH: u64 = 1024;
const KEYS: u64 = 256;
const MLP: u64 = 2816;
const LAYERS: u64 = 8;
const VOCABULARY: u64 = 32_000;
const TOKENS: u64 = 2 * 2048;
/// Parameters of the linear layers of one layer.
const LINEAR: u64 = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * MLP;

pub(super) fn resolved(set: &[(&str, &str)]) -> Resolution {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "8"),
        ("hidden_size", "1024"),
        ("ffn_hidden_size", "2816"),
        ("num_attention_heads", "16"),
        ("group_query_attention", "true"),
        ("num_query_groups", "4"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("vocab_size", "32000"),
        ("seq_length", "2048"),
        ("micro_batch_size", "2"),
        ("num_micro_batches", "4"),
        ("params_dtype", "bf16"),
        ("autocast", "none"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[], &settings)
}

#[track_caller]
pub(super) fn plan(set: &[(&str, &str)]) -> Plan {
    let resolution = resolved(set);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

const QV: [(&str, &str); 3] =
    [("train_type", "lora"), ("lora_rank", "16"), ("lora_target_modules", "q_proj,v_proj")];
/// Parameters of adapters of rank 16 on q_proj and v_proj of every layer.
const ADAPTERS: u64 = LAYERS * 16 * ((WIDTH + WIDTH) + (WIDTH + KEYS));

#[test]
fn adapters_are_counted_by_their_shapes() {
    let counted = parameters(&plan(&QV));
    assert_eq!(counted.trained.get(), ADAPTERS);
    assert_eq!(counted.total, parameters(&plan(&[])).total, "the model is the same");
    assert_eq!(counted.ranks[0].count.get(), counted.total.get() + ADAPTERS);
    let totals = memory(&plan(&QV)).ranks[0].totals;
    // PEFT's fp32 adapters over 16-bit weights: 4 bytes each for weight and gradient, 8 for AdamW.
    assert_eq!(totals.parameters.get(), 2 * counted.total.get() + 4 * ADAPTERS);
    assert_eq!(totals.gradients.get(), 4 * ADAPTERS);
    assert_eq!(totals.optimizer.get(), 8 * ADAPTERS);
}

#[test]
fn four_bit_weights_have_their_constants() {
    let linear = LAYERS * LINEAR;
    let rest = parameters(&plan(&[])).total.get() - linear;
    let held = |set: &[(&str, &str)]| {
        let all: Vec<_> = QV.iter().chain(set).copied().collect();
        let rank = memory(&plan(&all)).ranks.swap_remove(0);
        (rank.frozen.get(), rank.trained.get())
    };
    // Half a byte each and an fp32 constant per block of 64.
    let plain = [("base_quantization", "nf4"), ("train_type", "qlora")];
    assert_eq!(held(&plain), (linear / 2 + linear / 64 * 4 + 2 * rest, 4 * ADAPTERS));
    // Constants in 8 bits, with an fp32 constant per 256 of them and one mean for each of the four weights of a layer.
    let double = [plain[0], plain[1], ("double_quantization", "true")];
    let twice = linear / 64 + (linear / 64).div_ceil(256) * 4 + LAYERS * 4 * 4;
    let (frozen, _) = held(&double);
    assert!(frozen.abs_diff(linear / 2 + twice + 2 * rest) <= LAYERS * 4 * 4, "{frozen}");
    // Embedding, output layer and norms in fp32 if the model is prepared for kbit training.
    let upcast = [plain[0], plain[1], ("upcast_non_quantized", "true")];
    assert_eq!(held(&upcast).0, linear / 2 + linear / 64 * 4 + 4 * rest);
    let eight = [("base_quantization", "int8"), ("train_type", "qlora")];
    let rows = LAYERS * (WIDTH + 2 * KEYS + WIDTH + 2 * MLP + WIDTH);
    assert_eq!(held(&eight).0, linear + 4 * rows + 2 * rest);
}

/// transformers' Trainer asks bitsandbytes for fp32 states of embeddings; torchtune, which uses the same optimizer,
/// does not.
#[test]
fn moments_of_embeddings_stay_in_fp32_under_8_bit_adam() {
    let all = parameters(&plan(&[])).total.get();
    let words = VOCABULARY * WIDTH;
    let optimizer = |set: &[(&str, &str)]| memory(&plan(set)).ranks[0].totals.optimizer.get();
    let eight = ("optimizer", "adamw_8bit");
    let others = all - words;
    let wide = ("whole_embedding_states", "true");
    assert_eq!(optimizer(&[eight, wide]), 2 * others + 8 * others.div_ceil(256) + 8 * words);
    assert_eq!(optimizer(&[("software", "torchtune"), eight]), 2 * all + 8 * all.div_ceil(256));
}

/// The Trainer frees gradients after the step, even if micro-batches are accumulated.
#[test]
fn between_steps_a_trainer_holds_no_gradients() {
    let totals = memory(&plan(&QV)).ranks[0].totals;
    assert_eq!(totals.gradients.get(), 4 * ADAPTERS);
    // Weights, optimizer and cuBLAS's two workspaces.
    let workspaces = 2 * ((2 * 4096 + 8 * 16) << 10);
    assert_eq!(totals.between_steps.get(), totals.parameters.get() + totals.optimizer.get() + workspaces);
}

#[test]
fn muon_holds_one_momentum_for_adapters_and_nothing_for_frozen_weights() {
    let muon: Vec<_> = QV.iter().chain(&[("optimizer", "muon")]).copied().collect();
    // fp32 adapters, one momentum in the same format.
    assert_eq!(memory(&plan(&muon)).ranks[0].totals.optimizer.get(), 4 * ADAPTERS);
    let adam = memory(&plan(&QV)).ranks[0].totals.optimizer.get();
    assert_eq!(adam, 8 * ADAPTERS);
}

#[test]
fn fsdp_that_offloads_holds_no_shards_on_the_device() {
    let shards = [("data_parallel_engine", "fsdp2"), ("gpus_per_node", "8"), ("autocast", "bf16")];
    let offloads =
        [shards[0], shards[1], shards[2], ("offload_param", "true"), ("offload_optimizer", "true")];
    let totals = |set: &[(&str, &str)]| memory(&plan(set)).ranks.swap_remove(0).totals;
    let (kept, moved) = (totals(&shards), totals(&offloads));
    assert_eq!((moved.parameters.get(), moved.gradients.get(), moved.optimizer.get()), (0, 0, 0));
    assert!(kept.parameters.get() > 0 && kept.optimizer.get() > 0);
    assert_eq!(moved.activations, kept.activations);
}

/// Nothing of a reference waits for a backward pass, so that nothing frees what its forward pass gathered.
#[test]
fn a_reference_stays_gathered_where_weights_do() {
    let held = |stage: &str, reference| {
        let set = [
            ("data_parallel_engine", "fsdp2"),
            ("gpus_per_node", "8"),
            ("zero_stage", stage),
            ("training_objective", "dpo"),
            ("reference_model", reference),
        ];
        let plan = plan(&set);
        (memory(&plan).ranks[0].totals.parameters.get(), shardscope::estimate::parameters(&plan).total.get())
    };
    let more = |stage| {
        let ((with, count), (without, _)) = (held(stage, "loaded"), held(stage, "precomputed"));
        (with - without, 2 * count)
    };
    let (shard, whole) = more("3");
    assert_eq!(shard, whole / 8);
    assert_eq!(more("2").0, whole / 8 + whole);
}

#[test]
fn frozen_weights_have_no_gradient_products() {
    let full = flops(&plan(&[])).model.get();
    let tuned = flops(&plan(&QV)).model.get();
    let batches = 4.0;
    let frozen = 2.0 * (TOKENS * (LAYERS * LINEAR + WIDTH * VOCABULARY)) as f64;
    let adapters = 3.0 * 2.0 * (TOKENS * ADAPTERS) as f64;
    let expected = full + batches * (adapters - frozen);
    assert!((tuned / expected - 1.0).abs() < 1e-12, "{tuned} FLOPs, {expected} by hand");
    // Layers before the first one that trains only run forward.
    let last = flops(&plan(&[("train_type", "freeze"), ("trained_layers", "2")])).model.get();
    assert!(last < 0.6 * full, "{last} of {full}");
}

/// Layers before the first one that trains have no backward pass, so nothing is recomputed in them.
#[test]
fn frozen_layers_are_not_recomputed() {
    let freeze = [("train_type", "freeze"), ("trained_layers", "2")];
    let full =
        [("recompute_granularity", "full"), ("recompute_method", "uniform"), ("recompute_num_layers", "1")];
    let more = |set: &[(&str, &str)]| {
        let counts = flops(&plan(set));
        counts.hardware.get() - counts.model.get()
    };
    // Products with weights, and scores and values, full attention, for four micro-batches.
    let layer = 4 * (2 * TOKENS * LINEAR + 2 * 2 * TOKENS * 2048 * WIDTH);
    assert_eq!(more(&full), (8 * layer) as f64);
    assert_eq!(more(&[freeze[0], freeze[1], full[0], full[1], full[2]]), (2 * layer) as f64);
    assert_eq!(more(&freeze), 0.0);
}

#[test]
fn what_trains_and_what_is_frozen_stand_apart() {
    let resolution = resolved(&QV);
    let plan = resolution.plan.clone().expect("a plan");
    let report = advised(&plan).expect("a report");
    let text = document(&Source::new(""), &resolution, Some(&report), false);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let report = &value["report"];
    assert_eq!(report["parameters"]["trained"], ADAPTERS);
    assert_eq!(report["parameters"]["ranks"][0]["trained"], ADAPTERS);
    let rank = &report["memory"]["ranks"][0];
    assert_eq!(rank["trained"], 4 * ADAPTERS);
    let [trained, frozen, all] =
        ["trained", "frozen", "parameters"].map(|key| rank[key].as_u64().expect("bytes"));
    assert_eq!(trained + frozen, all);
}

#[test]
fn no_advice_cuts_what_the_software_does_not_cut() {
    let large = [
        ("accelerator", "L4"),
        ("gpus_per_node", "8"),
        ("num_layers", "64"),
        ("hidden_size", "4096"),
        ("ffn_hidden_size", "11008"),
        ("num_attention_heads", "32"),
    ];
    let set: Vec<_> = QV.iter().chain(&large).copied().collect();
    let report = advised(&plan(&set)).expect("a report");
    assert!(!report.memory.fits);
    for finding in &report.advice {
        for (field, _) in &finding.change {
            let name = field.name();
            assert!(!name.contains("parallel_size") && name != "zero_stage", "{}: {name}", finding.message);
        }
    }
    assert!(resolved(&[("tensor_model_parallel_size", "2"), ("gpus_per_node", "2")]).plan.is_none());
}

#[test]
fn an_optimizer_that_is_not_known_is_asked_for() {
    let unknown = resolved(&[("optimizer", "galore")]);
    assert!(unknown.plan.is_none());
    assert!(unknown.questions.iter().any(|question| question.name() == "optimizer"));
    let bytes = |optimizer| {
        let totals = memory(&plan(&[("optimizer", optimizer)])).ranks[0].totals;
        totals.optimizer.get() as f64 / parameters(&plan(&[])).total.get() as f64
    };
    assert_eq!(bytes("adam"), 4.0, "moments in the weights' own 16 bits");
    assert_eq!(bytes("lion"), 2.0);
    assert!(bytes("adafactor") < 0.02);
    assert!(bytes("soap") > 8.0);
}

#[test]
fn a_stage_of_one_layer_gathers_one_layer() {
    let peak = |layers| {
        let set = [
            ("num_layers", layers),
            ("gpus_per_node", "8"),
            ("zero_stage", "3"),
            ("data_parallel_engine", "deepspeed"),
        ];
        let rank = memory(&plan(&set)).ranks.swap_remove(0);
        let tree = rank
            .breakdown
            .child("peak_allocated")
            .and_then(|tree| tree.child("temporaries"))
            .expect("a node");
        let weights = tree.children().iter().find(|child| child.label().starts_with("gathered weights"));
        weights.expect("weights").value().get()
    };
    assert_eq!(2 * peak("1"), peak("2"));
}

/// Every training method with every attention, loss, sharding and checkpointing.
fn all_ways() -> Vec<Vec<(&'static str, &'static str)>> {
    let choices: [&[&[(&str, &str)]]; 8] = [
        &[
            &[],
            &[("train_type", "lora"), ("lora_target_modules", "all-linear"), ("lora_dropout", "0.05")],
            &[
                ("train_type", "lora"),
                ("lora_target_modules", "q_proj,v_proj"),
                ("modules_to_save", "embed_tokens"),
            ],
            &[
                ("train_type", "qlora"),
                ("lora_target_modules", "all-linear"),
                ("double_quantization", "true"),
            ],
            &[("train_type", "freeze"), ("trained_layers", "1")],
        ],
        &[&[("attn_implementation", "eager")], &[("attn_implementation", "sdpa"), ("padding_mask", "true")]],
        &[&[], &[("liger_kernel", "true")], &[("training_objective", "dpo")]],
        &[&[], &[("gradient_checkpointing", "true")]],
        &[&[("autocast", "none")], &[("autocast", "bf16"), ("params_dtype", "fp32")]],
        &[
            &[],
            &[("zero_stage", "2"), ("data_parallel_engine", "deepspeed")],
            &[("data_parallel_engine", "fsdp2")],
        ],
        &[&[], &[EXPERTS, ("moe_router_topk", "2")]],
        &[&[("optimizer", "adam")], &[("optimizer", "adamw_8bit"), ("num_micro_batches", "1")]],
    ];
    let mut all = vec![vec![("gpus_per_node", "4")]];
    for choice in choices {
        let before = std::mem::take(&mut all);
        all.extend(before.iter().flat_map(|set| choice.iter().map(move |more| [set, *more].concat())));
    }
    // Liger has experts of its own, which stop.
    all.retain(|set| !(set.contains(&("liger_kernel", "true")) && set.contains(&EXPERTS)));
    all
}

const EXPERTS: (&str, &str) = ("num_experts", "8");

/// `liger_kernel/transformers/monkey_patch.py` replaces experts too: by one function that keeps the products of gate and up
/// alone (0.8), or by modules with its gate (before).
#[test]
fn experts_under_liger_stop() {
    for liger in [("liger_kernel", "true"), ("liger_parts", "gates")] {
        let stopped = |more: &[(&str, &str)]| {
            let resolution = resolved(&[&[("gpus_per_node", "4"), liger], more].concat());
            let names: Vec<String> = resolution.not_modelled.iter().map(|item| item.name.clone()).collect();
            (resolution.plan.is_none(), names)
        };
        assert_eq!(stopped(&[EXPERTS, ("moe_router_topk", "2")]), (true, vec![liger.0.to_owned()]));
        assert_eq!(stopped(&[]), (false, vec![]));
    }
    let parts = [("gpus_per_node", "4"), ("liger_parts", "norms"), EXPERTS, ("moe_router_topk", "2")];
    assert!(resolved(&parts).plan.is_some());
}

#[test]
fn sums_hold_whatever_trains() {
    let mut plans = 0;
    for set in all_ways() {
        let plan = plan(&set);
        let memory = memory(&plan);
        for rank in &memory.ranks {
            let totals = rank.totals;
            let parts = totals.parameters + totals.gradients + totals.optimizer;
            assert_eq!(parts + totals.activations + totals.temporaries, totals.peak_allocated, "{set:?}");
            assert_eq!(rank.breakdown.value(), totals.peak_reserved, "{set:?}");
            assert!(
                totals.between_steps <= totals.peak_allocated,
                "{set:?}: more between steps than at the peak"
            );
            assert_eq!(rank.trained + rank.frozen, totals.parameters, "{set:?}");
        }
        let counted = parameters(&plan);
        let counts = counted.ranks[0];
        assert!(counts.trained <= counts.count, "{set:?}");
        assert!(flops(&plan).model.get() > 0.0, "{set:?}");
        plans += 1;
    }
    assert!(plans > 1150, "{plans} plans");
}

#[test]
fn what_keeps_less_peaks_lower() {
    const FLOAT: u64 = 4;
    let peak = |set: &[(&str, &str)]| memory(&plan(set)).worst.peak_allocated;
    for set in all_ways().into_iter().step_by(7) {
        let with = |more: (&'static str, &'static str)| {
            let mut set = set.clone();
            set.push(more);
            peak(&set)
        };
        let now = peak(&set);
        // Frozen layers are checkpointed too, which otherwise keep nothing.
        if !set.contains(&("train_type", "freeze")) {
            assert!(with(("gradient_checkpointing", "true")) <= now, "{set:?}");
        }
        // The first trained layer after frozen ones has an input without a gradient: torch's norm only keeps its result
        // there, Liger's also one statistic per token.
        let statistics = if set.contains(&("train_type", "freeze")) { FLOAT * TOKENS } else { 0 };
        if !set.contains(&("training_objective", "dpo")) && !set.contains(&EXPERTS) {
            assert!(with(("liger_kernel", "true")) <= now + Bytes::new(statistics), "{set:?}");
        }
        assert!(with(("micro_batch_size", "1")) <= now, "{set:?}");
    }
}

/// ZeRO-3 gathers a module's weights while it runs (`partitioned_param_coordinator.py:fetch_sub_module`): those of the
/// output layer while the loss is computed.
#[test]
fn zero_3_gathers_the_output_layer_at_the_loss() {
    let set = [("gpus_per_node", "4"), ("data_parallel_engine", "deepspeed"), ("zero_stage", "3")];
    let memory = memory(&plan(&set));
    let rank = &memory.ranks[0];
    assert_eq!(rank.within, Some("output layer and loss"), "{}", rank.at);
    let allocated = rank.breakdown.child("peak_allocated").expect("a node");
    let temporaries = allocated.child("temporaries").expect("a node");
    let head = temporaries.child("gathered weight of the output layer").expect("a term");
    assert_eq!(head.value(), Bytes::new(2 * VOCABULARY * WIDTH));
}
