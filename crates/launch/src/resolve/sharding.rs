//! The optimizer, and what data-parallel ranks share.

use super::precision::number;
use super::setting::SettingValue::Int;
use super::table::Table;
use shardscope_plan::{DpSharding, Field, Number, Optimizer, OptimizerKind};

pub(super) fn optimizer(table: &Table) -> Optimizer {
    let format = |field| number(table.word(field)).unwrap_or(Number::Fp32);
    let kind = match table.word(Field::Optimizer) {
        "sgd" if table.real(Field::SgdMomentum).unwrap_or(0.9) > 0.0 => OptimizerKind::SgdMomentum,
        "sgd" => OptimizerKind::Sgd,
        "muon" | "dist_muon" | "adaptive_muon" => OptimizerKind::Muon,
        _ => OptimizerKind::Adam,
    };
    let offloaded = table.on(Field::OptimizerCpuOffload);
    Optimizer {
        kind,
        precision_aware: table.on(Field::UsePrecisionAwareOptimizer),
        main_params: format(Field::MainParamsDtype),
        exp_avg: format(Field::ExpAvgDtype),
        exp_avg_sq: format(Field::ExpAvgSqDtype),
        cpu_offload_fraction: if offloaded {
            table.real(Field::OptimizerOffloadFraction).unwrap_or(1.0)
        } else {
            0.0
        },
    }
}

pub(super) fn dp_sharding(table: &mut Table) -> DpSharding {
    let (stage, rule) = match () {
        () if table.on(Field::UseTorchFsdp2) => (3, "PyTorch FSDP2 shards weights, gradients and states"),
        () if table.on(Field::UseMegatronFsdp) => match table.word(Field::DataParallelShardingStrategy) {
            "no_shard" => (0, "Megatron-FSDP, no_shard"),
            "optim" => (1, "Megatron-FSDP, optim"),
            "optim_grads" => (2, "Megatron-FSDP, optim_grads"),
            _ => (3, "Megatron-FSDP, optim_grads_params"),
        },
        () if table.on(Field::UseDistributedOptimizer) => {
            (1, "the distributed optimizer shards optimizer states")
        }
        () => (0, "without the distributed optimizer every replica holds all"),
    };
    if stage == 0 {
        table.default(Field::ZeroStage, Int(stage), rule);
    }
    table.derive(Field::ZeroStage, Int(stage), rule);
    let deepspeed = matches!(table.word(Field::Software), "megatron_deepspeed" | "gpt_neox");
    match table.number(Field::ZeroStage) {
        0 if deepspeed && table.on(Field::Bf16) => {
            table.remark(Field::ZeroStage, "DeepSpeed's bf16 optimizer shards its states even at stage 0");
            DpSharding::OptimizerStates
        }
        0 => DpSharding::Replicated,
        1 => DpSharding::OptimizerStates,
        2 => DpSharding::Gradients,
        _ => DpSharding::Parameters,
    }
}

/// What PyTorch's FSDP2 excludes (`arguments.py:validate_args`).
pub(super) fn torch_fsdp2(table: &mut Table) {
    if !table.on(Field::UseTorchFsdp2) {
        return;
    }
    let excluded = [
        (
            table.degree(Field::PipelineModelParallelSize) > 1,
            Field::PipelineModelParallelSize,
            "pipeline parallelism",
        ),
        (
            table.degree(Field::ExpertModelParallelSize) > 1,
            Field::ExpertModelParallelSize,
            "expert parallelism",
        ),
        (
            table.on(Field::UseDistributedOptimizer),
            Field::UseDistributedOptimizer,
            "the distributed optimizer",
        ),
        (table.on(Field::Fp16), Field::Fp16, "fp16"),
        (
            !table.on(Field::UntieEmbeddingsAndOutputWeights),
            Field::UntieEmbeddingsAndOutputWeights,
            "tied embeddings (add --untie-embeddings-and-output-weights)",
        ),
        (
            table.on(Field::GradientAccumulationFusion),
            Field::GradientAccumulationFusion,
            "fused gradient accumulation (add --no-gradient-accumulation-fusion)",
        ),
    ];
    for (at_fault, field, what) in excluded {
        if at_fault {
            let message = format!("--use-torch-fsdp2 excludes {what}");
            table.refuse("torch-fsdp2", &[field, Field::UseTorchFsdp2], message, "");
        }
    }
}
