//! The YAML that `accelerate config` writes, and the options of `accelerate launch`:
//! machines, precision, DeepSpeed or FSDP.
//! Keys: `accelerate/commands/config/config_args.py`, `accelerate/commands/launch.py`.

use super::leaves::{Leaf, Leaves, Scalars};
use super::names;
use super::reader::{Claim, Reader, Role};
use super::releases::{Installed, tell_unlifted};
use super::signs;
use super::trainer::{UNITS, left_to_file, waits, words, wraps_otherwise};
use crate::{Argument, Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};
use std::cell::Cell;

/// The file that `accelerate config` writes.
#[derive(Debug)]
pub struct Accelerate;

impl Reader for Accelerate {
    fn name(&self) -> &'static str {
        "an accelerate configuration"
    }

    fn states_machines(&self) -> &'static str {
        "state num_machines and num_processes, or add the launch line (accelerate launch --num_machines 2 --num_processes 16 …)"
    }

    fn date(&self, reading: &mut Reading, installed: Installed) {
        tell_unlifted(reading, installed);
    }

    fn about(&self) -> &'static str {
        "machines, precision, DeepSpeed or FSDP, as `accelerate config` writes them"
    }

    fn role(&self) -> Role {
        Role::Launcher
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        signs::any(tree, &["distributed_type", "num_machines"])
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }
}

fn read(root: &Node) -> Reading {
    of_scalars(&Scalars::from_node(root))
}

pub(super) fn of_scalars(scalars: &Scalars) -> Reading {
    let mut leaves = Leaves::over(scalars);
    leaves.take_all(&[("num_machines", Field::NumNodes), ("num_processes", Field::WorldSize)]);
    engine(&mut leaves);
    one_unit(&mut leaves);
    for path in names::words("accelerate") {
        leaves.pass(path);
    }
    format_of_weights(&mut leaves);
    let why = "accelerate launches programs that train models of transformers";
    leaves.reading.software = Some((Software::HfTransformers, why.to_owned()));
    leaves.finish("an accelerate configuration")
}

/// If every rank holds a copy of the model, weights stay in the format in which the program loads them: mixed precision
/// only wraps `forward` in autocast (`accelerate/accelerator.py:prepare_model`). With FSDP the shards are cast to fp32
/// there, and DeepSpeed's engine casts everything.
fn format_of_weights(leaves: &mut Leaves<'_>) {
    let kind = leaves.get("distributed_type");
    if leaves.reading.value(Field::ZeroStage).is_some_and(|stage| stage != "0")
        || kind.is_some_and(|kind| !matches!(kind.value.as_str(), "MULTI_GPU" | "NO"))
    {
        return;
    }
    let mut open = Found::new(Field::ParamsDtype, String::new(), Origin::Default)
        .by("mixed_precision", leaves.get("mixed_precision").or(kind).and_then(|leaf| leaf.span));
    open.hole = Some("the program that is launched".to_owned());
    leaves.reading.take(open);
    // A gradient scaler rejects fp16 gradients (`torch/amp/grad_scaler.py:_unscale_grads_`).
    let usual = if leaves.text("mixed_precision") == Some("fp16") { "fp32" } else { "bf16" };
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::ParamsDtype),
        prompt: "In which format does the program load the weights?".to_owned(),
        choices: ["bf16", "fp32"].map(str::to_owned).to_vec(),
        proposal: Some(usual.to_owned()),
    });
}

/// Options of `accelerate launch` that override a key, each with that key and the value that the bare switch implies.
const OPTIONS: [(&str, &str, &str); 9] = [
    ("mixed_precision", "mixed_precision", ""),
    ("fp16", "mixed_precision", "fp16"),
    ("use_deepspeed", "distributed_type", "DEEPSPEED"),
    ("use_fsdp", "distributed_type", "FSDP"),
    ("deepspeed_config_file", "deepspeed_config.deepspeed_config_file", ""),
    ("zero_stage", "deepspeed_config.zero_stage", ""),
    ("offload_optimizer_device", "deepspeed_config.offload_optimizer_device", ""),
    ("offload_param_device", "deepspeed_config.offload_param_device", ""),
    ("dynamo_backend", "dynamo_config.dynamo_backend", ""),
];

/// Settings from the options of `accelerate launch`, except the machines, which the launch itself states; `None`
/// if there are none. They reach the program through the environment, so the program's own precision takes
/// precedence over theirs (`is_typed`).
pub fn read_launcher(options: &[Argument], is_typed: bool) -> Option<Reading> {
    let said = words::leaves(options);
    let mut keys: Vec<Leaf> = Vec::new();
    for leaf in said.all() {
        let known = OPTIONS.iter().find(|(option, _, _)| *option == leaf.path);
        let (path, switch) = match known {
            Some((_, path, switch)) => ((*path).to_owned(), *switch),
            None if leaf.path.starts_with("fsdp_") => (format!("fsdp_config.{}", leaf.path), ""),
            None if leaf.path.starts_with("parallelism_config_") => {
                (format!("parallelism_config.{}", leaf.path), "")
            }
            None => continue,
        };
        if leaf.flag() == Some(false) || path == "mixed_precision" && is_typed {
            continue;
        }
        let value = if switch.is_empty() { leaf.value.as_str() } else { switch };
        keys.push(Leaf { path, value: value.to_owned(), used: Cell::new(false), ..leaf.clone() });
    }
    if keys.is_empty() {
        return None;
    }
    let scalars = Scalars::from_leaves(keys);
    let mut leaves = Leaves::over(&scalars);
    engine(&mut leaves);
    leaves.pass("distributed_type");
    Some(leaves.finish("the options of accelerate launch"))
}

/// Precision, and how the model is sharded over ranks.
fn engine(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[("deepspeed_config.zero_stage", Field::ZeroStage)]);
    if leaves.reading.value(Field::ZeroStage).is_some() {
        // The config that accelerate derives from it sets neither `reduce_bucket_size` nor `overlap_comm`
        // (`DeepSpeedPlugin.__post_init__`).
        leaves.state(Field::ReduceBuckets, "1", Origin::Default, "DeepSpeed's default");
    }
    // "auto" leaves the value to the program (`accelerate/utils/dataclasses.py:DeepSpeedPlugin.__post_init__`).
    let steps = "deepspeed_config.gradient_accumulation_steps";
    if leaves.text(steps) == Some("auto") {
        leaves.pass(steps);
    } else {
        leaves.take_all(&[(steps, Field::NumMicroBatches)]);
    }
    if let Some(leaf) = leaves.get("mixed_precision") {
        match leaf.value.as_str() {
            "bf16" => leaves.switch(Field::Bf16, true, leaf),
            "fp16" => leaves.switch(Field::Fp16, true, leaf),
            "fp8" => leaves.say(Field::Fp8, "hybrid", leaf),
            _ => {}
        }
    }
    let devices = &[
        ("deepspeed_config.offload_optimizer_device", Field::OffloadOptimizer),
        ("deepspeed_config.offload_param_device", Field::OffloadParam),
    ];
    for &(path, field) in devices {
        if let Some(leaf) = leaves.get(path) {
            leaves.switch(field, leaf.value != "none", leaf);
        }
    }
    // The launcher passes on only the two keys above (`utils/launch.py`, 1.12); DeepSpeed's own
    // groups below them are ignored.
    for group in ["deepspeed_config.offload_optimizer.", "deepspeed_config.offload_param."] {
        if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with(group)) {
            let device = format!("{}_device", group.trim_end_matches('.'));
            let message = format!("accelerate does not read {}: it takes {device}", leaf.path);
            let said = Diagnostic::warning(Code::KeysLeftAside, message);
            leaves.reading.diagnostics.push(said.at_some(leaf.span));
            leaves.pass_below(&[group]);
        }
    }
    // As files were written before `dynamo_config`.
    let off = |leaf: &&Leaf| leaf.path == "dynamo_backend" && leaf.value.eq_ignore_ascii_case("no");
    leaves.all().iter().filter(off).for_each(|leaf| leaf.used.set(true));
    match leaves.get("distributed_type") {
        Some(leaf) if leaf.value == "FSDP" => fsdp(leaves),
        Some(leaf) if leaf.value == "DEEPSPEED" => leaves.say(Field::DataParallelEngine, "deepspeed", leaf),
        // A copy on every rank, unless the program itself shards the model.
        Some(leaf) if leaf.value == "MULTI_GPU" => {
            leaves.say(Field::ZeroStage, "0", leaf);
        }
        // One process, whatever devices the machine has (`commands/launch.py:simple_launcher`).
        Some(leaf) if leaf.value == "MULTI_CPU" => {
            let item = NotModelled::new("distributed_type", &leaf.value, Effect::Memory, ON_PROCESSORS);
            leaves.reading.not_modelled.push(item.at_some(leaf.span));
        }
        Some(leaf) if leaf.value == "MEGATRON_LM" => {
            let item = NotModelled::new("distributed_type", &leaf.value, Effect::Memory, UNDER_ACCELERATE);
            leaves.reading.not_modelled.push(item.at_some(leaf.span));
        }
        Some(leaf) if leaf.value == "NO" && !leaves.has("num_processes") => {
            leaves.state(Field::WorldSize, "1", Origin::Derived, "distributed_type NO launches one process");
        }
        _ => {}
    }
    if let Some(leaf) = leaves.get("deepspeed_config.deepspeed_config_file") {
        left_to_file(leaves, leaf);
    }
    // Only a launch of a single process passes this on (only `utils/launch.py:prepare_simple_launcher_cmd_env` sets
    // ACCELERATE_USE_CPU): the other launchers start on accelerators anyway.
    let started = ["DEEPSPEED", "FSDP", "MULTI_GPU", "MEGATRON_LM"];
    let on_accelerators = leaves.text("distributed_type").is_some_and(|kind| started.contains(&kind));
    for (path, effect, what) in LACKING {
        if *path == "use_cpu" && on_accelerators {
            leaves.pass(path);
            continue;
        }
        if let Some(leaf) =
            leaves.get(path).filter(|leaf| leaf.flag() != Some(false) && leaf.whole() != Some(1))
        {
            let item = NotModelled::new(path, &leaf.value, *effect, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

const ON_PROCESSORS: &str = "a training on CPUs";
const UNDER_ACCELERATE: &str = "Megatron-LM under accelerate";

/// Keys that change figures and are not modelled.
const LACKING: &[(&str, Effect, &str)] = &[
    ("parallelism_config.parallelism_config_tp_size", Effect::Memory, "tensor parallelism of accelerate"),
    ("parallelism_config.parallelism_config_cp_size", Effect::Memory, "context parallelism of accelerate"),
    ("parallelism_config.parallelism_config_sp_size", Effect::Memory, "sequence parallelism of accelerate"),
    ("dynamo_config.dynamo_backend", Effect::Memory, "torch.compile, which saves other tensors for backward"),
    ("megatron_lm_config", Effect::Memory, UNDER_ACCELERATE),
    ("use_cpu", Effect::Memory, ON_PROCESSORS),
];

/// Groups of ranks that shard the model (`accelerate/parallelism_config.py:fsdp_dim_names`): FSDP2 over `dp_shard`,
/// with replicas over `dp_replicate`.
fn copies(leaves: &mut Leaves<'_>, second: bool) {
    let shards = leaves.whole("parallelism_config.parallelism_config_dp_shard_size").unwrap_or(1);
    let path = "parallelism_config.parallelism_config_dp_replicate_size";
    let Some(leaf) = leaves.get(path).filter(|leaf| leaf.whole() != Some(1)) else { return };
    if second && shards > 1 {
        leaves.say(Field::NumDistributedOptimizerInstances, &leaf.value, leaf);
    } else {
        let what = "model replicas across FSDP groups";
        leaves
            .reading
            .not_modelled
            .push(NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span));
    }
}

/// A file without a policy wraps nothing (`FullyShardedDataParallelPlugin.__post_init__`: "NO_WRAP"): the whole model is one
/// unit, gathered at once. Options of the launch are not checked for it, since the file beside them may state the policy.
fn one_unit(leaves: &mut Leaves<'_>) {
    let shards = leaves.get("distributed_type").filter(|leaf| leaf.value == "FSDP");
    let Some(leaf) = shards.filter(|_| leaves.get(POLICY).is_none()) else { return };
    let what = "FSDP without fsdp_auto_wrap_policy, which gathers the whole model at once";
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

const POLICY: &str = "fsdp_config.fsdp_auto_wrap_policy";

/// Every `fsdp_*` key (`accelerate/utils/dataclasses.py`, FullyShardedDataParallelPlugin).
fn fsdp(leaves: &mut Leaves<'_>) {
    for key in [
        "auto_wrap_policy",
        "transformer_layer_cls_to_wrap",
        "min_num_params",
        "state_dict_type",
        "sync_module_states",
        "cpu_ram_efficient_loading",
        "use_orig_params",
        "backward_prefetch",
        "backward_prefetch_policy",
        "forward_prefetch",
    ] {
        leaves.pass(&format!("fsdp_config.fsdp_{key}"));
    }
    if let Some(leaf) = leaves.get(POLICY).filter(|leaf| wraps_otherwise(leaf)) {
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, UNITS).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    let second = leaves.whole("fsdp_config.fsdp_version") == Some(2);
    // FSDP2 takes a boolean for what FSDP1 calls a strategy; both spellings occur under either key.
    let keys = ["fsdp_config.fsdp_sharding_strategy", "fsdp_config.fsdp_reshard_after_forward"];
    let said = leaves.first(&keys);
    leaves.pass(keys[1]);
    let (stage, hybrid) = match said.map(|leaf| leaf.value.as_str()).unwrap_or_default() {
        "NO_SHARD" | "3" => ("0", false),
        "SHARD_GRAD_OP" | "2" | "false" | "False" => ("2", false),
        "_HYBRID_SHARD_ZERO2" | "HYBRID_SHARD_ZERO2" | "5" => ("2", true),
        "HYBRID_SHARD" | "4" => ("3", true),
        _ => ("3", false),
    };
    let Some(leaf) = said.or_else(|| leaves.get("distributed_type")) else { return };
    copies(leaves, second);
    leaves.say(Field::ZeroStage, stage, leaf);
    let engine = if second { "fsdp2" } else { "fsdp1" };
    leaves.say(Field::DataParallelEngine, engine, leaf);
    leaves.state(Field::DeferReduction, "true", Origin::Default, waits(engine));
    if hybrid && !second {
        leaves.switch(Field::ShardWithinNodes, true, leaf);
    } else if hybrid {
        let what = "sharding within nodes, replicated across nodes (HSDP)";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Communication, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // CPUOffload: shards of weights, gradients and optimizer states live on the host, and
    // one layer at a time is gathered.
    let offload = ["fsdp_config.fsdp_offload_params", "fsdp_config.fsdp_offload_param"];
    if let Some(leaf) = offload.iter().find_map(|path| leaves.yes(path)) {
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    for path in offload {
        leaves.pass(path);
    }
    if let Some(leaf) = leaves.yes("fsdp_config.fsdp_activation_checkpointing") {
        leaves.recompute_all(leaf);
        leaves.say(Field::RecomputeNumLayers, "1", leaf);
    }
}
