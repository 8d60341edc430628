//! Recipes of Megatron-Bridge: functions that return a `ConfigContainer`. Settings that its shared functions and
//! classes add are data here, from the release of August 2026 (commit 067f987): `recipes/common.py`,
//! `perf_recipes/_common.py`, `training/mixed_precision.py`, `training/setup.py`.

use super::super::leaves::{Leaf, Leaves, Scalars};
use super::super::nemo;
use super::bridge_adapters;
use super::bridge_layouts;
use super::bridge_towers::{self, TUNING};
use super::providers;
use super::table::leaf;
use crate::named::{take_model, with_vision};
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, Software};
use shardscope_python::evaluate::{Calls, Outcome};
use shardscope_python::tree::{Scalar, Tree, scalar, text};

/// Paths and values.
type Rows = &'static [(&'static str, &'static str)];

/// The settings that `_pretrain_common` returns.
const PRETRAIN: Rows = &[
    ("train.train_iters", "300000"),
    ("train.global_batch_size", "32"),
    ("train.micro_batch_size", "2"),
    ("optimizer.optimizer", "adam"),
    ("optimizer.use_distributed_optimizer", "true"),
    ("ddp.overlap_grad_reduce", "true"),
    ("ddp.overlap_param_gather", "true"),
    ("ddp.use_distributed_optimizer", "true"),
    ("dataset.seq_length", "4096"),
    ("tokenizer.use_tokenizer_vocab_size", "true"),
    ("mixed_precision", "bf16_mixed"),
    ("comm_overlap", ""),
];

/// Returned by `_sft_common` and `_peft_common`; `ConfigContainer.validate` gives DDP the distributed optimizer, too.
const TUNE: Rows = &[
    ("train.train_iters", "1000"),
    ("train.global_batch_size", "128"),
    ("train.micro_batch_size", "1"),
    ("optimizer.optimizer", "adam"),
    ("optimizer.use_distributed_optimizer", "true"),
    ("ddp.use_distributed_optimizer", "true"),
    ("dataset.seq_length", "2048"),
    ("mixed_precision", "bf16_mixed"),
    ("comm_overlap", ""),
    ("peft", ""),
];

/// The settings that `_benchmark_common` assigns.
const BENCHMARK: Rows = &[
    ("train.train_iters", "50"),
    ("tokenizer.use_tokenizer_vocab_size", "false"),
    ("model.apply_rope_fusion", "true"),
    ("model.cross_entropy_fusion_impl", "te"),
    ("mixed_precision.grad_reduce_in_fp32", "false"),
];

/// The optimizer's settings in the pairs that functions of `recipes/utils/optimizer_utils.py` return.
const FUSED_ADAM: Rows = &[("0.optimizer", "adam"), ("0.use_distributed_optimizer", "true")];
/// The same for `distributed_muon_with_cosine_annealing`: Muon whose layers' states the data-parallel ranks share out.
const MUON: Rows = &[("0.optimizer", "dist_muon")];

/// Number formats by the function that returns them, with the settings of each beyond bf16 or fp16.
const PRECISIONS: &[(&str, Rows)] = &[
    ("bf16_mixed", &[]),
    ("fp16_mixed", &[("grad_reduce_in_fp32", "false")]),
    (
        "bf16_with_fp8_delayed_scaling_mixed",
        &[("fp8", "hybrid"), ("fp8_recipe", "delayed"), ("fp8_param_gather", "true")],
    ),
    ("bf16_with_mxfp8_mixed", &[("fp8", "e4m3"), ("fp8_recipe", "mxfp8"), ("fp8_param_gather", "true")]),
    (
        "bf16_with_fp8_current_scaling_mixed",
        &[
            ("fp8", "hybrid"),
            ("fp8_recipe", "tensorwise"),
            ("fp8_param_gather", "true"),
            ("first_last_layers_bf16", "true"),
        ],
    ),
    (
        "nemotron_h_bf16_with_fp8_current_scaling_mixed",
        &[
            ("fp8", "hybrid"),
            ("fp8_recipe", "tensorwise"),
            ("fp8_param_gather", "true"),
            ("first_last_layers_bf16", "true"),
        ],
    ),
    (
        "bf16_with_fp8_subchannel_scaling_mixed",
        &[("fp8", "hybrid"), ("fp8_recipe", "blockwise"), ("fp8_param_gather", "false")],
    ),
    ("bf16_with_nvfp4_mixed", &[("fp4", "e2m1"), ("fp4_recipe", "nvfp4")]),
];

/// The arguments of `_perf_precision`, and the function that each stands for.
const PERFORMANCE: Rows = &[
    ("bf16", "bf16_mixed"),
    ("fp8_cs", "bf16_with_fp8_current_scaling_mixed"),
    ("fp8_ds", "bf16_with_fp8_delayed_scaling_mixed"),
    ("fp8_mx", "bf16_with_mxfp8_mixed"),
    ("nvfp4", "bf16_with_nvfp4_mixed"),
];

/// Provider settings for models on the Hub that the checkpoint does not have (`models/*/*_bridge.py`).
pub(crate) const PROVIDER: &[(Field, &str)] = &[
    (Field::HiddenDropout, "0"),
    (Field::AttentionDropout, "0"),
    (Field::BiasDropoutFusion, "true"),
    (Field::BiasSwigluFusion, "true"),
    (Field::MaskedSoftmaxFusion, "true"),
    (Field::CrossEntropyLossFusion, "true"),
    (Field::GradientAccumulationFusion, "true"),
];
/// The same for models with experts.
pub(crate) const EXPERTS: &[(Field, &str)] = &[
    (Field::MoeGroupedGemm, "true"),
    (Field::MoePermuteFusion, "true"),
    (Field::MoeTokenDispatcherType, "alltoall"),
];

/// Groups that do not concern the training itself, when Python collects garbage, and how gradients are scaled and watched.
const AROUND: &str = "peft. scheduler. rng. dist. logger. checkpoint. validation. env_vars rerun_ train.manual_gc \
    ddp.check_for_nan_in_grad ddp.average_in_collective";

/// The modules that CUDA graphs capture, by today's name and the one of releases before.
const GRAPHED: [&str; 2] = ["model.cuda_graph_modules", "model.cuda_graph_scope"];

/// The distributed optimizer's switches.
const SHARDED: [&str; 2] = ["ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer"];

/// Vocabulary of the null tokenizer (`recipes/utils/tokenizer_utils.py`).
const NULL_TOKENIZER: &str = "32000";

/// The functions and classes that recipes call.
pub(super) struct Bridge;

impl Calls for Bridge {
    fn value(&self, name: &str, arguments: &[(Option<String>, Tree)]) -> Option<Tree> {
        let first = || arguments.first().and_then(|(_, tree)| text(tree, ""));
        match name.rsplit('.').next().unwrap_or(name) {
            "_pretrain_common" => Some(rows(PRETRAIN)),
            common @ ("_sft_common" | "_peft_common" | "_sft_common_vlm" | "_peft_common_vlm") => {
                let mut tree = rows(TUNE);
                if common.ends_with("_vlm") {
                    tree.retain(|(path, _)| TUNING.iter().all(|(changed, _)| changed != path));
                    tree.extend(rows(TUNING));
                }
                if common.starts_with("_peft") {
                    tree.push(("peft".to_owned(), Scalar { text: "lora".to_owned(), ..Scalar::default() }));
                }
                Some(tree)
            }
            "default_peft_config" => Some(bridge_adapters::call(first().unwrap_or("lora"), arguments)),
            "LoRA" => Some(bridge_adapters::call("lora", arguments)),
            "DoRA" => Some(bridge_adapters::call("dora", arguments)),
            "CanonicalLoRA" => Some(bridge_adapters::call("canonical_lora", arguments)),
            "_perf_precision" => {
                let word = first()?;
                let (_, function) = PERFORMANCE.iter().find(|(known, _)| *known == word)?;
                let mut tree = precision(function)?;
                tree.retain(|(path, _)| path != "grad_reduce_in_fp32" && path != "first_last_layers_bf16");
                tree.push((
                    "grad_reduce_in_fp32".to_owned(),
                    Scalar { text: "false".to_owned(), ..Scalar::default() },
                ));
                Some(tree)
            }
            "_get_kimi_k2_pipeline_layout" => bridge_layouts::kimi_k2(arguments),
            "_get_deepseek_v3_pipeline_layout" => bridge_layouts::deepseek_v3(arguments),
            "get_mixed_precision_config" => {
                let (_, given) = arguments.first()?;
                // A configuration stays as it is.
                let named = text(given, "").filter(|_| given.len() == 1);
                Some(named.and_then(precision).unwrap_or_else(|| given.clone()))
            }
            "from_hf_pretrained" | "from_hf_config" => Some(scalar(first()?)),
            "DEFAULT_NULL_TOKENIZER_VOCAB_SIZE" => Some(scalar(NULL_TOKENIZER)),
            "distributed_fused_adam_with_cosine_annealing" => Some(rows(FUSED_ADAM)),
            "distributed_muon_with_cosine_annealing" => Some(rows(MUON)),
            function => precision(function).or_else(|| super::table::recipe(function)),
        }
    }

    fn assigns(&self, name: &str, tree: &Tree) -> Option<Tree> {
        match name {
            "_benchmark_common" | "_llama_benchmark_common" => {
                let mut out = rows(BENCHMARK);
                // A number format given only by name keeps its own settings.
                let named = text(tree, "mixed_precision.grad_reduce_in_fp32").is_none();
                out.retain(|(path, _)| !named || !path.starts_with("mixed_precision."));
                if name == "_llama_benchmark_common" {
                    out.extend(rows(&[("model.moe_token_dispatcher_type", "alltoall")]));
                }
                Some(out)
            }
            // Without a named dispatcher nothing changes; if the GPU supports it, it dispatches the experts.
            "apply_flex_dispatcher_backend" => {
                let named =
                    text(tree, "moe_flex_dispatcher_backend").is_some_and(|backend| !backend.is_empty());
                Some(if named { rows(&[("moe_token_dispatcher_type", "flex")]) } else { Tree::new() })
            }
            // Which modules graphs capture is known where a recipe assigns it; cuda_graph_impl states
            // whether there are graphs.
            "set_cuda_graph_modules" | "clear_cuda_graph_modules" => Some(Tree::new()),
            "_enable_overlap_param_gather_with_optimizer_step" => Some(Tree::new()),
            _ => bridge_towers::finishes(name).map(rows),
        }
    }
}

fn rows(rows: Rows) -> Tree {
    let value = |text: &str| Scalar { text: text.to_owned(), ..Scalar::default() };
    rows.iter().map(|(path, text)| ((*path).to_owned(), value(text))).collect()
}

/// The settings that a number format's function returns; NeMo 2 wrote the names with dashes.
fn precision(function: &str) -> Option<Tree> {
    let function = &function.replace('-', "_");
    let (_, beside) = PRECISIONS.iter().find(|(known, _)| known == function)?;
    let mut tree = scalar(function);
    tree.extend(rows(&[("grad_reduce_in_fp32", "true")]));
    tree.extend(rows(beside));
    Some(tree)
}

/// Reads the settings that a recipe returns, modified by `words`. `name` is the function's; `base` is the
/// offset of the program in its source.
pub(super) fn read(outcome: &Outcome, name: &str, base: u32, words: Vec<Leaf>) -> Reading {
    read_marking(outcome, name, base, words).0
}

/// The paths of a recipe that its reading looks at.
pub(super) fn used(outcome: &Outcome, name: &str) -> Vec<String> {
    read_marking(outcome, name, 0, Vec::new()).1
}

fn read_marking(outcome: &Outcome, name: &str, base: u32, words: Vec<Leaf>) -> (Reading, Vec<String>) {
    let mut leaves: Vec<Leaf> = outcome.tree.iter().map(|(path, scalar)| leaf(path, scalar, base)).collect();
    super::stages::fill(&mut leaves, &outcome.tree, name);
    let samples = super::overrides::length_of_samples(&words);
    for word in words {
        // A number format given by name brings all of its own settings.
        let below = |leaf: &Leaf| word.path == "mixed_precision" && leaf.path.starts_with("mixed_precision.");
        let renamed =
            |leaf: &Leaf| GRAPHED.contains(&leaf.path.as_str()) && GRAPHED.contains(&word.path.as_str());
        leaves.retain(|leaf| leaf.path != word.path && !below(leaf) && !renamed(leaf));
        let beside = if word.path == "mixed_precision" { precision(&word.value) } else { None };
        for (path, scalar) in beside.unwrap_or_default().iter().filter(|(path, _)| !path.is_empty()) {
            leaves.push(Leaf { span: word.span, ..leaf(&format!("mixed_precision.{path}"), scalar, base) });
        }
        leaves.push(word);
    }
    let value = |path: &str| {
        leaves.iter().rev().find(|leaf| leaf.path == path).map_or("", |leaf| leaf.value.as_str())
    };
    // During setup the number format's settings override DDP's.
    let reduces =
        match (value("mixed_precision.grad_reduce_in_fp32"), value("mixed_precision").contains("fp16")) {
            (said, _) if !said.is_empty() => said.to_owned(),
            (_, fp16) => (!fp16).to_string(),
        };
    leaves.retain(|leaf| leaf.path != "ddp.grad_reduce_in_fp32");
    leaves.push(leaf("ddp.grad_reduce_in_fp32", &Scalar { text: reduces, ..Scalar::default() }, base));
    // What either has on, both get (`training/config.py:_validate_and_sync_distributed_optimizer_settings`).
    let shards = |leaf: &Leaf| SHARDED.contains(&leaf.path.as_str());
    if leaves.iter().any(|leaf| shards(leaf) && leaf.value == "true") {
        leaves.retain(|leaf| !shards(leaf) || leaf.value == "true");
    }
    providers::defaults(&mut leaves);
    let scalars = Scalars::from_leaves(leaves);
    let mut leaves = Leaves::over(&scalars);
    nemo::keys(&mut leaves);
    formats(&mut leaves);
    leaves.take(&["model.seq_length"], Field::SeqLength);
    super::overrides::other_length(&mut leaves, samples.as_ref());
    model(&mut leaves, name);
    vocabulary(&mut leaves);
    machines(&mut leaves, name);
    super::overrides::gathers_alone(&mut leaves);
    bridge_towers::read(&mut leaves, name);
    for call in &outcome.unknown {
        let what = "what this call changes in the recipe";
        leaves.reading.not_modelled.push(NotModelled::new("recipe", call, Effect::Memory, what));
    }
    leaves.reading.software =
        Some((Software::MegatronCoreTe, format!("{name}, a recipe of Megatron-Bridge")));
    let used = scalars.all().iter().filter(|leaf| leaf.used.get()).map(|leaf| leaf.path.clone()).collect();
    (leaves.finish("a recipe of Megatron-Bridge"), used)
}

/// fp8 and fp4 as the number format's own settings say, which take precedence over its name.
fn formats(leaves: &mut Leaves<'_>) {
    for (path, field) in [("mixed_precision.fp8", Field::Fp8), ("mixed_precision.fp4", Field::Fp4)] {
        leaves.take(&[path], field);
    }
    leaves.pass("mixed_precision.grad_reduce_in_fp32");
    bridge_adapters::read(leaves);
    // `megatron_fsdp/param_and_grad_buffer.py:FixedPoolAllocator`.
    let buffers = leaves.yes("ddp.fsdp_double_buffer");
    if let Some(leaf) = buffers.filter(|_| leaves.flag("ddp.use_megatron_fsdp") == Some(true)) {
        leaves.lack(leaf, Effect::Memory, "two buffers of gathered weights and gradients");
    }
    leaves.take(&GRAPHED, Field::CudaGraphModules);
    leaves.take_all(&[
        ("model.fine_grained_activation_offloading", Field::FineGrainedActivationOffloading),
        ("model.offload_modules", Field::OffloadModules),
        ("model.min_offloaded_tensor_size", Field::MinOffloadedTensorSize),
        ("model.activation_offload_fraction", Field::ActivationOffloadFraction),
        ("model.delta_offload_bytes_across_pp_ranks", Field::DeltaOffloadBytesAcrossPpRanks),
    ]);
    leaves.pass_below(&[
        "model.fine_grained_offloading_max_inflight_offloads",
        "model.delay_offload_until_cuda_graph",
    ]);
    // The random number generator.
    leaves.pass("model.use_te_rng_tracker");
    leaves.pass_below(&AROUND.split_ascii_whitespace().collect::<Vec<_>>());
}

/// The model on the Hub whose configuration the provider takes.
fn model(leaves: &mut Leaves<'_>, recipe: &str) {
    let named = leaves.first(&["model", "model.hf_model_id"]).cloned();
    leaves.pass("model.is_hybrid_model");
    let class = named.as_ref().map_or("", |leaf| leaf.value.as_str());
    if class.contains('/') || !providers::take(leaves, class, recipe) {
        let Some(leaf) = named.as_ref().filter(|leaf| leaf.value.contains('/')) else {
            if !class.is_empty() {
                let what = "the model of this class; paste its config.json, or say its name";
                leaves.reading.not_modelled.push(NotModelled::new("model", class, Effect::Model, what));
            }
            return;
        };
        with_vision(&mut leaves.reading, &leaf.value, "model", leaf.span);
        // The recipe's own shape settings take precedence over the checkpoint's configuration.
        take_model(&mut leaves.reading, &leaf.value, "model", leaf.span);
    }
    let whose = "set by Megatron-Bridge's providers for models of the Hub";
    leaves.state_all(PROVIDER, Origin::Derived, whose);
    if leaves.reading.found.iter().any(|found| found.field == Field::NumExperts) {
        leaves.state_all(EXPERTS, Origin::Derived, whose);
    }
}

/// Benchmark recipes keep the checkpoint's vocabulary; the others take the tokenizer's and pad it.
fn vocabulary(leaves: &mut Leaves<'_>) {
    let from_tokenizer = leaves.flag("tokenizer.use_tokenizer_vocab_size") == Some(true);
    let is_null = leaves.text("tokenizer.tokenizer_type").is_some_and(|kind| kind.contains("Null"));
    if from_tokenizer && is_null {
        if let Some(leaf) = leaves.get("tokenizer.vocab_size").cloned() {
            leaves.say_noted(
                Field::VocabSize,
                &leaf.value,
                &leaf,
                "the null tokenizer's, as the recipe asks for",
            );
        }
        return;
    }
    if !from_tokenizer {
        let note = "Megatron-Bridge keeps the checkpoint's vocabulary as it is";
        leaves.state(Field::PadVocabSize, "false", Origin::Derived, note);
    }
}

/// Machines from the parts of the recipe's name: `qwen3_30b_a3b_pretrain_8gpu_h100_bf16_config`.
fn machines(leaves: &mut Leaves<'_>, name: &str) {
    let note = format!("by its name: {name}");
    let words: Vec<&str> = name.split('_').collect();
    for pair in words.windows(2) {
        let [count, kind] = pair else { continue };
        let Some(gpus) = count.strip_suffix("gpu").and_then(|count| count.parse::<u64>().ok()) else {
            continue;
        };
        let found = Found::new(Field::WorldSize, gpus.to_string(), Origin::Script).by(name, None);
        leaves.reading.take(found.note(note.as_str()));
        if let Some(accelerator) = catalog::accelerator_in(kind) {
            let found = Found::new(Field::Accelerator, accelerator.name, Origin::Script).by(name, None);
            leaves.reading.take(found.note(note.as_str()));
        }
    }
}
