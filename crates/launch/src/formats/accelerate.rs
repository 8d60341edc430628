//! The YAML that `accelerate config` writes: machines, precision, DeepSpeed or FSDP.
//! Keys: `accelerate/commands/config/config_args.py`.

use super::leaves::{Leaves, Scalars};
use crate::{Origin, Reading};
use shardscope_config_tree::Node;
use shardscope_plan::{Field, Software};

/// Reads an accelerate configuration.
pub(super) fn read(root: &Node) -> Reading {
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
    let kind = leaves.get("distributed_type");
    if let Some(leaf) = kind.filter(|leaf| leaf.value == "FSDP") {
        let strategy = leaves.text("fsdp_config.fsdp_sharding_strategy").unwrap_or_default();
        let stage = match strategy {
            "NO_SHARD" | "3" => "0",
            "SHARD_GRAD_OP" | "2" => "2",
            _ => "3",
        };
        leaves.say(Field::ZeroStage, stage, leaf);
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
