//! The YAML that `accelerate config` writes: machines, precision, DeepSpeed or FSDP.
//! Keys: `accelerate/commands/config/config_args.py`.

use super::leaves::{Leaves, Scalars};
use super::reader::{Claim, Reader, Role};
use super::signs;
use crate::{Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};

/// What `accelerate config` writes.
#[derive(Debug)]
pub(super) struct Accelerate;

impl Reader for Accelerate {
    fn name(&self) -> &'static str {
        "an accelerate configuration"
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
    let scalars = Scalars::of(root);
    let mut leaves = Leaves::over(&scalars);
    leaves.take_all(&[
        ("num_machines", Field::NumNodes),
        ("num_processes", Field::WorldSize),
        ("deepspeed_config.zero_stage", Field::ZeroStage),
        ("deepspeed_config.gradient_accumulation_steps", Field::NumMicroBatches),
    ]);
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
    if leaves.text("distributed_type") == Some("FSDP") {
        fsdp(&mut leaves);
    }
    engine_file(&mut leaves);
    for path in IDLE {
        leaves.pass(path);
    }
    for (path, effect, what) in LACKING {
        if let Some(leaf) =
            leaves.get(path).filter(|leaf| leaf.flag() != Some(false) && leaf.whole() != Some(1))
        {
            let item = NotModelled::new(path, &leaf.value, *effect, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
    leaves.state(
        Field::AttentionKernel,
        "flash",
        Origin::Default,
        "PyTorch chooses its fused kernel by itself",
    );
    leaves.reading.software = Some((Software::TorchFsdp, "an accelerate configuration".to_owned()));
    leaves.finish("an accelerate configuration")
}

/// Keys that say how the launch goes about it, or how weights are loaded, saved and wrapped: the same bytes in all.
const IDLE: [&str; 21] = [
    "compute_environment",
    "debug",
    "downcast_bf16",
    "enable_cpu_affinity",
    "gpu_ids",
    "main_training_function",
    "main_process_ip",
    "main_process_port",
    "machine_rank",
    "rdzv_backend",
    "same_network",
    "use_cpu",
    "tpu_use_cluster",
    "deepspeed_config.zero3_init_flag",
    "deepspeed_config.zero3_save_16bit_model",
    "deepspeed_config.gradient_clipping",
    "deepspeed_config.deepspeed_multinode_launcher",
    "deepspeed_config.deepspeed_hostfile",
    "deepspeed_config.deepspeed_moe_layer_cls_names",
    "distributed_type",
    "fsdp_config",
];

/// Keys that change figures and are not modelled.
const LACKING: &[(&str, Effect, &str)] = &[
    ("parallelism_config.parallelism_config_tp_size", Effect::Memory, "tensor parallelism of accelerate"),
    ("parallelism_config.parallelism_config_cp_size", Effect::Memory, "context parallelism of accelerate"),
    (
        "parallelism_config.parallelism_config_dp_replicate_size",
        Effect::Memory,
        "copies of sharded groups (HSDP)",
    ),
    ("dynamo_config.dynamo_backend", Effect::Memory, "torch.compile, which keeps other tensors"),
    ("megatron_lm_config", Effect::Memory, "Megatron-LM under accelerate"),
    ("fsdp_config.fsdp_offload_params", Effect::Memory, OFFLOAD),
    ("fsdp_config.fsdp_offload_param", Effect::Memory, OFFLOAD),
];
const OFFLOAD: &str = "weights, gradients and optimizer states on the host (FSDP)";

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
    let second = leaves.whole("fsdp_config.fsdp_version") == Some(2);
    // FSDP2 takes a truth for what FSDP1 calls a strategy; both spellings occur under either key.
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
    leaves.say(Field::ZeroStage, stage, leaf);
    leaves.say(Field::DataParallelEngine, if second { "fsdp2" } else { "fsdp1" }, leaf);
    if hybrid {
        let what = "sharding inside nodes with copies between them (HSDP)";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Communication, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    if let Some(leaf) = leaves.yes("fsdp_config.fsdp_activation_checkpointing") {
        leaves.recompute_all(leaf);
        leaves.say(Field::RecomputeNumLayers, "1", leaf);
    }
}

/// DeepSpeed's own file, where the configuration only names it.
fn engine_file(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("deepspeed_config.deepspeed_config_file") else { return };
    let name = leaf.value.rsplit('/').next().unwrap_or(&leaf.value).to_owned();
    let mut found =
        Found::new(Field::ZeroStage, String::new(), Origin::Script).by(leaf.path.as_str(), leaf.span);
    found.hole = Some(name.clone());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        name: Field::ZeroStage.name().to_owned(),
        prompt: format!("Which ZeRO stage does {name} set?"),
        choices: ["0", "1", "2", "3"].map(str::to_owned).to_vec(),
        proposal: Some("3".to_owned()),
    });
}
