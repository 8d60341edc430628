//! The optimizer, and what data-parallel ranks share.

use super::precision::number;
use super::table::Table;
use crate::Question;
use crate::SettingValue::Int;
use shardscope_plan::{DpSharding, Field, NumberFormat, Optimizer, OptimizerKind, StateFormat};
use shardscope_source::Code;

/// Optimizers by the names of the setting, with their kind and the format of their states. Paged ones keep theirs in
/// memory that CUDA may move to the host.
const KNOWN: &[(&str, OptimizerKind, StateFormat)] = &[
    ("adam", OptimizerKind::Adam, StateFormat::Plain),
    ("paged_adamw", OptimizerKind::Adam, StateFormat::Single),
    ("adamw_32bit", OptimizerKind::Adam, StateFormat::Single),
    ("adamw_8bit", OptimizerKind::Adam, StateFormat::EightBit),
    ("paged_adamw_8bit", OptimizerKind::Adam, StateFormat::EightBit),
    ("adamw_4bit", OptimizerKind::Adam, StateFormat::FourBit),
    ("adamw_fp8", OptimizerKind::Adam, StateFormat::Float8),
    ("lion", OptimizerKind::Lion, StateFormat::Plain),
    ("paged_lion", OptimizerKind::Lion, StateFormat::Single),
    ("lion_8bit", OptimizerKind::Lion, StateFormat::EightBit),
    ("lion_32bit", OptimizerKind::Lion, StateFormat::Single),
    ("paged_lion_8bit", OptimizerKind::Lion, StateFormat::EightBit),
    ("muon", OptimizerKind::Muon, StateFormat::Plain),
    ("dist_muon", OptimizerKind::Muon, StateFormat::Plain),
    ("adaptive_muon", OptimizerKind::Muon, StateFormat::Plain),
    ("adagrad", OptimizerKind::SumOfSquares, StateFormat::Plain),
    ("rmsprop", OptimizerKind::SumOfSquares, StateFormat::Plain),
    ("rmsprop_8bit", OptimizerKind::SumOfSquares, StateFormat::EightBit),
    ("rmsprop_32bit", OptimizerKind::SumOfSquares, StateFormat::Single),
    // All of bitsandbytes (`transformers/trainer_optimizer.py:_get_bitsandbytes_optimizer`).
    ("ademamix", OptimizerKind::AdEmaMix, StateFormat::Single),
    ("ademamix_8bit", OptimizerKind::AdEmaMix, StateFormat::EightBit),
    ("paged_ademamix", OptimizerKind::AdEmaMix, StateFormat::Single),
    ("paged_ademamix_8bit", OptimizerKind::AdEmaMix, StateFormat::EightBit),
    ("schedule_free", OptimizerKind::Adam, StateFormat::Plain),
    // The second sequence of weights, z, and nothing else (`schedulefree/sgd_schedulefree.py`).
    ("schedule_free_sgd", OptimizerKind::SgdMomentum, StateFormat::Plain),
    ("adafactor", OptimizerKind::Adafactor, StateFormat::Plain),
    ("adam_mini", OptimizerKind::AdamMini, StateFormat::Plain),
    ("soap", OptimizerKind::Soap, StateFormat::Plain),
    ("shampoo", OptimizerKind::Shampoo, StateFormat::Plain),
];

/// Asks for the nearest one to an optimizer whose states are not known.
pub(super) fn ask_for_optimizer(table: &mut Table) {
    let name = table.word(Field::Optimizer).to_owned();
    table.ask(Question {
        name: Field::Optimizer.name().to_owned(),
        prompt: format!("What {name} holds for each parameter is not modelled. Which optimizer is closest?"),
        choices: KNOWN.iter().map(|(name, _, _)| (*name).to_owned()).collect(),
        proposal: None,
    });
}

/// The optimizer; Adam's states are taken where the reader goes on without those of one that is not known.
pub(super) fn optimizer(table: &Table) -> Optimizer {
    let (kind, states) = kind(table);
    let format = |field| number(table.word(field)).unwrap_or(NumberFormat::Fp32);
    // A fraction is read only under its switch.
    let offloaded = table.on(Field::OptimizerCpuOffload);
    Optimizer {
        kind,
        precision_aware: table.on(Field::UsePrecisionAwareOptimizer),
        shares_weights: table.on(Field::ReuseFp32Param),
        main_params: format(Field::MainParamsDtype),
        exp_avg: format(Field::ExpAvgDtype),
        exp_avg_sq: format(Field::ExpAvgSqDtype),
        cpu_offload_fraction: if offloaded {
            table.real(Field::OptimizerOffloadFraction).unwrap_or(1.0)
        } else {
            0.0
        },
        states,
        // DeepSpeed's engine hands flat partitions to the optimizer, in which it does not find the embedding (`check_overrides`).
        whole_embedding: states == StateFormat::EightBit
            && table.on(Field::WholeEmbeddingStates)
            && table.word(Field::DataParallelEngine) != "deepspeed",
    }
}

fn kind(table: &Table) -> (OptimizerKind, StateFormat) {
    let name = table.word(Field::Optimizer).to_owned();
    if name == "sgd" {
        // Without momentum SGD has no state at all; what the software takes where nothing is said is among the defaults.
        let momentum = table.real(Field::SgdMomentum).unwrap_or(0.0) > 0.0;
        let kind = if momentum { OptimizerKind::SgdMomentum } else { OptimizerKind::Sgd };
        return (kind, StateFormat::Plain);
    }
    // No name at all is Adam, Megatron's default.
    let known = KNOWN.iter().find(|(known, _, _)| *known == name || (name.is_empty() && *known == "adam"));
    if let Some((_, kind, states)) = known {
        return (*kind, *states);
    }
    (OptimizerKind::Adam, StateFormat::Plain)
}

pub(super) fn dp_sharding(table: &mut Table) -> DpSharding {
    // In Megatron's order of precedence: an FSDP of either kind makes the distributed optimizer's own sharding moot.
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
        () => (0, "without the distributed optimizer every replica holds all states"),
    };
    // Stage 0 is what a run has unless something is asked for, so that it shows as a default and not as a consequence.
    if stage == 0 {
        table.default(Field::ZeroStage, Int(stage), rule);
    }
    // Where a stage is stated (DeepSpeed, a reader's rule) it stays.
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
    // Megatron's wrapper of FSDP2, with these limits; trainers that call FSDP2 themselves do not set the flag.
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
            table.refuse(Code::TorchFsdp2, &[field, Field::UseTorchFsdp2], message, "");
        }
    }
}
