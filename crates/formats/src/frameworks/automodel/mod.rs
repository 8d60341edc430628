//! NeMo Automodel. Keys: its recipes.

mod experts;
mod lacking;
mod modules;
mod optimizer;
mod tensor;

use self::lacking::lack;
pub(crate) use self::modules::{has_recorded_plan, one_by_one};
use self::modules::{implementation, is_usual};
use self::tensor::{has_plan, over_tensor_ranks};
use super::row::Row;
use crate::leaves::Leaves;
use crate::projections::of_model;
use crate::{Effect, NotModelled, Origin};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, Software};

/// The modules that `*_proj` matches in decoders like Llama's.
const PROJECTIONS: &str = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj";

/// The same in Mixtral.
const ATTENTION: &str = "q_proj k_proj v_proj o_proj";

/// Whether the model is Mixtral, which trains with transformers' modules.
fn is_mixtral(leaves: &Leaves<'_>) -> bool {
    let named = MODELS.iter().find_map(|path| leaves.text(path));
    named.is_some_and(|name| name.starts_with("mistralai/Mixtral-"))
}

/// The linear layers of such a decoder.
const ALL_LINEAR: &str = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj lm_head";

/// Keys that name the model.
const MODELS: &[&str] =
    &["model.pretrained_model_name_or_path", "model.config.pretrained_model_name_or_path", "model.config"];

/// NeMo Automodel's settings file.
pub(crate) const AUTOMODEL: Row = Row {
    trainer: "NeMo Automodel",
    title: "a configuration of NeMo Automodel",
    about: "NeMo Automodel: model by name, batch, adapters, FSDP2",
    signs: &[&["step_scheduler", "model"]],
    keys: &[
        (&["step_scheduler.global_batch_size"], Field::GlobalBatchSize),
        (&["step_scheduler.local_batch_size"], Field::MicroBatchSize),
        (
            &[
                "packed_sequence.packed_sequence_size",
                "dataset.seq_length",
                "dataset.seq_len",
                "dataset.max_length",
            ],
            Field::SeqLength,
        ),
        (&["distributed.tp_size"], Field::TensorModelParallelSize),
        (&["distributed.cp_size"], Field::ContextParallelSize),
        (&["distributed.pp_size"], Field::PipelineModelParallelSize),
        (&["distributed.ep_size"], Field::ExpertModelParallelSize),
        (&["benchmark.num_nodes"], Field::NumNodes),
        (&["distributed.defer_fsdp_grad_sync"], Field::DeferReduction),
        (&["peft.dim"], Field::LoraRank),
        (&["peft.alpha"], Field::LoraAlpha),
        (&["peft.dropout"], Field::LoraDropout),
    ],
    models: MODELS,
    software: Software::HfTransformers,
    lacking: None,
    extra: automodel,
    program: None,
};

fn automodel(leaves: &mut Leaves<'_>) {
    leaves.pass_words("automodel");
    recipe(leaves);
    spread(leaves);
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("peft.")) {
        adapters(leaves);
    }
    implementation(leaves, MODELS);
    over_tensor_ranks(leaves, MODELS);
    optimizer::optimizer(leaves);
    machines(leaves);
    let groups = [
        ("flow_matching.", Effect::Model, "a diffusion model"),
        ("model.backend.", Effect::Memory, "Automodel's own kernels and layers instead of transformers'"),
        ("quantization.", Effect::Memory, "quantized weights under Automodel's own modules"),
        ("qat.", Effect::Memory, "quantization-aware training"),
        ("distributed.mp_policy.", Effect::Memory, "number formats of FSDP2 other than Automodel's own"),
        ("distributed.offload_policy.", Effect::Memory, "shards offloaded to the host (FSDP2)"),
        ("distributed.autocast_dtype", Effect::Memory, "autocast over FSDP2"),
    ];
    let own = matches!(leaves.reading.software, Some((Software::Automodel, _)));
    let mixes = experts::is_known(MODELS.iter().find_map(|path| leaves.text(path)).unwrap_or_default());
    if own && mixes {
        experts::backend(leaves);
    }
    let usual =
        mixes || leaves.all().iter().filter(|leaf| leaf.path.starts_with("model.backend.")).all(is_usual);
    if own && usual {
        leaves.pass_below(&["model.backend."]);
    }
    for (group, effect, what) in groups {
        if own && usual && group == "model.backend." {
            continue;
        }
        if leaves.all().iter().any(|leaf| leaf.path.starts_with(group) && !leaf.value.is_empty()) {
            lack(leaves, group, effect, what);
            leaves.pass_below(&[group]);
        }
    }
    for (path, what) in [
        ("fp8.enabled", "linear layers in fp8"),
        ("distributed.enable_compile", "torch.compile, which saves other tensors for backward"),
        ("distributed.enable_fsdp2_prefetch", "prefetching more than the next layer"),
        ("peft.use_dora", "DoRA in Automodel"),
    ] {
        if leaves.yes(path).is_some() {
            lack(leaves, path, Effect::Memory, what);
        }
    }
    // With FSDP2 `instantiate_infrastructure` passes over it: only `distributed.enable_compile` compiles there
    // (`_transformers/infrastructure.py`, `isinstance(model_wrapper, FSDP2Manager)`).
    if leaves.yes("compile.enabled").is_some()
        && leaves.reading.value(Field::DataParallelEngine) != Some("fsdp2")
    {
        lack(
            leaves,
            "compile.enabled",
            Effect::Memory,
            "torch.compile, which saves other tensors for backward",
        );
    }
    // A disabled one changes nothing, however it would compile or round
    // (`components/utils/compile_utils.py:CompileConfig`, `components/quantization/fp8.py:FP8Config`); an enabled one
    // has already stopped the verdict.
    leaves.pass_below(&["compile.", "fp8."]);
    // Keys of pipeline stages and experts, whose degrees stop the verdict.
    leaves.pass_below(&["distributed.pipeline.", "distributed.moe."]);
}

/// The machines that a recipe names, if any (`components/launcher/skypilot`, `components/launcher/slurm`).
fn machines(leaves: &mut Leaves<'_>) {
    // `none`: the ranks that remain of the world (`components/distributed/mesh_utils.py:_infer_dp_size`).
    if let Some(leaf) = leaves.get("distributed.dp_size").filter(|leaf| leaf.whole() > Some(0)) {
        leaves.say(Field::DataParallelSize, &leaf.value, leaf);
    }
    leaves.take(&["skypilot.num_nodes", "slurm.nodes"], Field::NumNodes);
    leaves.take(&["slurm.ntasks_per_node"], Field::GpusPerNode);
    if let Some(leaf) = leaves.get("skypilot.accelerators") {
        let (name, count) = leaf.value.split_once(':').unwrap_or((&leaf.value, "1"));
        if count.parse::<u64>().is_ok_and(|count| count > 0) {
            leaves.say(Field::GpusPerNode, count, leaf);
        }
        if let Some(accelerator) = catalog::accelerator_in(name) {
            leaves.say(Field::Accelerator, &accelerator.name, leaf);
        }
        leaves.state(Field::NumNodes, "1", Origin::Default, "SkyPilot starts one node unless told otherwise");
    }
    leaves.pass_below(&["skypilot.", "slurm."]);
}

/// Only recipes that train a complete decoder on the next token are read (`nemo_automodel/recipes/llm`).
fn recipe(leaves: &mut Leaves<'_>) {
    const KNOWN: &[&str] =
        &["TrainFinetuneRecipeForNextTokenPrediction", "BenchmarkingRecipeForNextTokenPrediction"];
    let name = leaves.text("recipe").or_else(|| leaves.text("recipe._target_"));
    let last = name.and_then(|name| name.rsplit('.').next());
    if last.is_some_and(|name| !KNOWN.contains(&name)) {
        lack(leaves, "recipe", Effect::Model, "a recipe other than next-token training of a decoder");
    }
}

/// How the model is sharded (`components/distributed/config.py`): FSDP2 holds shards in the format in which they were
/// loaded, gathers them in bf16 and reduces gradients in fp32.
fn spread(leaves: &mut Leaves<'_>) {
    let old = leaves.text("distributed._target_").and_then(|class| class.rsplit('.').next());
    let strategy = leaves.text("distributed.strategy").or(old).unwrap_or("fsdp2").to_ascii_lowercase();
    let second = strategy.starts_with("fsdp2");
    if !second && !strategy.starts_with("ddp") {
        let path = if old.is_some() { "distributed._target_" } else { "distributed.strategy" };
        lack(leaves, path, Effect::Memory, "Megatron-FSDP, whose buffers are its own");
    }
    let (engine, stage) = match leaves.flag("distributed.reshard_after_forward") {
        _ if !second => ("ddp", "0"),
        Some(false) => ("fsdp2", "2"),
        _ => ("fsdp2", "3"),
    };
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, "default of Automodel");
    leaves.state(Field::ZeroStage, stage, Origin::Default, "Automodel shards by FSDP2");
    leaves.state(Field::Autocast, "none", Origin::Default, "Automodel loads weights as they are trained");
    if second {
        leaves.state(Field::ReduceDtype, "fp32", Origin::Default, "mp_policy of Automodel's FSDP2");
        leaves.state(Field::DeferReduction, "true", Origin::Default, "defer_fsdp_grad_sync of Automodel");
    }
    // `components/distributed/mesh_utils.py`: a mesh of `dp_replicate` by `dp_shard_cp`.
    let copies = leaves.get("distributed.dp_replicate_size").filter(|leaf| leaf.whole() > Some(1));
    if let Some(leaf) = copies.filter(|_| second) {
        let note = "HSDP replicas of the sharded ranks";
        leaves.say_noted(Field::NumDistributedOptimizerInstances, &leaf.value, leaf, note);
    }
    if leaves.flag("distributed.reshard_after_forward") == Some(true) {
        let what = "the last layer gathered a second time for backward";
        lack(leaves, "distributed.reshard_after_forward", Effect::Memory, what);
    }
    // Boolean values are read by the same code as those of other trainers.
    match leaves.get("distributed.activation_checkpointing") {
        Some(leaf) if leaf.value == "full" => leaves.switch(Field::GradientCheckpointing, true, leaf),
        Some(leaf) if leaf.switched().is_none() && leaf.value != "none" => {
            let what = "selective checkpointing that saves every second matmul";
            lack(leaves, "distributed.activation_checkpointing", Effect::Memory, what);
        }
        _ => {}
    }
    if leaves.text("distributed.activation_checkpointing_scope").is_some_and(|scope| scope != "all") {
        let what = "checkpointing part of each layer";
        lack(leaves, "distributed.activation_checkpointing_scope", Effect::Memory, what);
    }
    // Other degrees stop the verdict in the code shared by all trainers of transformers modules.
    if leaves.reading.count(Field::ContextParallelSize).is_some_and(|degree| degree > 1) {
        let what = "sequences that Automodel shards over ranks with a transformers model";
        let size = leaves.reading.value(Field::ContextParallelSize).unwrap_or_default().to_owned();
        let name = Field::ContextParallelSize.name();
        leaves.reading.not_modelled.push(NotModelled::new(name, &size, Effect::Memory, what));
    }
    if leaves.reading.value(Field::Bf16) != Some("true") {
        let what = "shards in a dtype other than the bf16 that FSDP2 gathers";
        lack(leaves, "model.torch_dtype", Effect::Memory, what);
    }
}

/// The layers that `*_proj` matches (`components/_peft/module_matcher.py:wildcard_match`).
fn projections(leaves: &mut Leaves<'_>) {
    let note = "*_proj of Automodel";
    let Some(layers) = MODELS.iter().find_map(|path| leaves.text(path)).and_then(of_model) else {
        return leaves.state(Field::LoraTargetModules, PROJECTIONS, Origin::Default, note);
    };
    let matched: Vec<&str> = layers.iter().copied().filter(|name| name.ends_with("_proj")).collect();
    if matched.is_empty() {
        let what = "adapters on *_proj, which no linear layer of this model is called";
        return lack(leaves, "peft.target_modules", Effect::Model, what);
    }
    leaves.state(Field::LoraTargetModules, &matched.join(" "), Origin::Default, note);
}

/// Automodel's adapters (`components/_peft/lora.py`). `LinearLoRA` without its own autograd function is
/// `lora_B(lora_A(x) * scale)` added to the frozen product: it saves the input and the low-rank product, as PEFT's
/// adapters do, in the type of the weights. Its memory-efficient function, the default, recomputes the low-rank
/// product. MLPs are fused only if weights are materialized when adapters are inserted, which is not so on several GPUs
/// under FSDP2 (`is_meta_device`, `lora_mlp.py:_fusible`).
fn adapters(leaves: &mut Leaves<'_>) {
    leaves.state(Field::TrainType, "lora", Origin::Derived, "the text sets up LoRA");
    leaves.state(Field::LoraRank, "8", Origin::Default, "PeftConfig of Automodel");
    leaves.state(Field::LoraAlpha, "32", Origin::Default, "PeftConfig of Automodel");
    leaves.state(Field::LoraDropout, "0", Origin::Default, "PeftConfig of Automodel");
    let why = "Automodel builds adapters in the type of the weights";
    leaves.state(Field::AdapterDtype, "bf16", Origin::Default, why);
    // This matches all linear layers, including the output layer (`components/_peft/module_matcher.py`).
    if leaves.yes("peft.match_all_linear").is_some() {
        let named = MODELS.iter().find_map(|path| leaves.text(path)).unwrap_or_default();
        let fused =
            leaves.text("loss_fn._target_").is_some_and(|class| class.ends_with("FusedLinearCrossEntropy"));
        if !has_recorded_plan(named) || fused {
            let what = "adapters on every linear layer of this model, or in front of a fused loss";
            lack(leaves, "peft.match_all_linear", Effect::Model, what);
        }
        let why = "match_all_linear of Automodel";
        leaves.state(Field::LoraTargetModules, ALL_LINEAR, Origin::Derived, why);
    }
    leaves.pass("peft.match_all_linear");
    match leaves.get("peft.target_modules") {
        Some(leaf) if leaf.value.trim_matches(['[', ']']) != "*_proj" => {
            if leaf.value.contains('*') {
                lack(
                    leaves,
                    "peft.target_modules",
                    Effect::Model,
                    "adapters on modules matched by a pattern",
                );
            } else {
                leaves.say(Field::LoraTargetModules, &leaf.value, leaf);
            }
        }
        // Its experts are parameters (`modeling_mixtral.py:MixtralExperts`); only linear layers are matched.
        _ if is_mixtral(leaves) => {
            leaves.state(Field::LoraTargetModules, ATTENTION, Origin::Default, "*_proj of Automodel");
        }
        _ => projections(leaves),
    }
    for path in ["peft.exclude_modules", "peft.lora_dtype"] {
        if leaves.get(path).is_some() {
            lack(leaves, path, Effect::Model, "adapters on other modules, or in another dtype");
        }
    }
    let drops =
        leaves.get("peft.dropout").and_then(|leaf| leaf.value.parse::<f64>().ok()).is_some_and(|p| p > 0.0);
    if leaves.text("peft.dropout_position").is_some_and(|place| place != "post") && drops {
        lack(leaves, "peft.dropout_position", Effect::Memory, "dropout in front of Automodel's adapters");
    }
    leaves.pass("peft.dropout_position");
    leaves.state(Field::LoraDropoutAfter, "true", Origin::Default, "dropout_position of Automodel");
    // It is not used for matrices that DTensor shards (`lora.py:_should_use_memory_efficient_lora`).
    if !has_plan(leaves, MODELS) && leaves.flag("peft.use_memory_efficient_lora") != Some(false) {
        if leaves.reading.value(Field::DataParallelEngine) == Some("fsdp2") {
            let why = "use_memory_efficient_lora of Automodel";
            leaves.state(Field::LoraKernels, "each", Origin::Default, why);
        } else {
            let what = "MLPs fused with their adapters into one autograd function, as in Automodel under DDP";
            lack(leaves, "peft", Effect::Memory, what);
        }
    }
    leaves.pass_below(&["peft._target_", "peft.use_triton", "peft.use_memory_efficient_lora"]);
}

/// Automodel's training of draft models.
pub(crate) const DRAFTS: Row = Row {
    trainer: "NeMo Automodel",
    title: "a recipe of NeMo Automodel for draft models",
    about: "NeMo Automodel's draft models for speculative decoding, which are not modelled",
    signs: &[&["recipe", "recipe_args"]],
    keys: &[(&["recipe_args.max_length", "recipe_args.max_seq_length"], Field::SeqLength)],
    models: &["recipe_args.target_model_name_or_path"],
    software: Software::HfTransformers,
    lacking: Some("a draft model that learns from another one (speculative decoding)"),
    // The message above covers every key.
    extra: |leaves| leaves.pass_below(&[""]),
    program: None,
};
