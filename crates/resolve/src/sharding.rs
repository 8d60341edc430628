//! The optimizer, and what data-parallel ranks shard.

use super::precision::number;
use super::table::Table;
use crate::SettingValue::Int;
use crate::{Asked, Effect, Question};
use shardscope_plan::{DpSharding, Field, NumberFormat, Optimizer, OptimizerKind, StateFormat};
use shardscope_source::Code;

/// Optimizers by the setting's names, with their kind and state format. Paged ones keep their states in memory that
/// CUDA may move to the host.
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
    ("adagrad", OptimizerKind::Adagrad, StateFormat::Plain),
    ("rmsprop", OptimizerKind::SumOfSquares, StateFormat::Plain),
    ("rmsprop_8bit", OptimizerKind::SumOfSquares, StateFormat::EightBit),
    ("rmsprop_32bit", OptimizerKind::SumOfSquares, StateFormat::Single),
    // All from bitsandbytes (`transformers/trainer_optimizer.py:_get_bitsandbytes_optimizer`).
    ("ademamix", OptimizerKind::AdEmaMix, StateFormat::Single),
    ("ademamix_8bit", OptimizerKind::AdEmaMix, StateFormat::EightBit),
    ("paged_ademamix", OptimizerKind::AdEmaMix, StateFormat::Single),
    ("paged_ademamix_8bit", OptimizerKind::AdEmaMix, StateFormat::EightBit),
    ("schedule_free", OptimizerKind::Adam, StateFormat::Plain),
    // Only the second sequence of weights, z (`schedulefree/sgd_schedulefree.py`).
    ("schedule_free_sgd", OptimizerKind::SgdMomentum, StateFormat::Plain),
    ("adafactor", OptimizerKind::Adafactor, StateFormat::Plain),
    ("adam_mini", OptimizerKind::AdamMini, StateFormat::Plain),
    ("adamw_kahan", OptimizerKind::AdamKahan, StateFormat::Plain),
    ("galore", OptimizerKind::Adam, StateFormat::Plain),
    ("galore_8bit", OptimizerKind::Adam, StateFormat::EightBit),
    ("apollo", OptimizerKind::Adam, StateFormat::Plain),
    ("apollo_svd", OptimizerKind::Adam, StateFormat::Plain),
    ("soap", OptimizerKind::Soap, StateFormat::Plain),
    ("shampoo", OptimizerKind::Shampoo, StateFormat::Plain),
];

/// Asks for the closest known optimizer to one whose states are not known.
pub(super) fn ask_for_optimizer(table: &mut Table) {
    let name = table.word(Field::Optimizer).to_owned();
    table.ask(Question {
        asks: Asked::Setting(Field::Optimizer),
        prompt: format!("What {name} holds for each parameter is not modelled. Which optimizer is closest?"),
        choices: KNOWN.iter().map(|(name, _, _)| (*name).to_owned()).collect(),
        proposal: None,
    });
}

/// Adam with Kahan compensation is supported for bf16 weights in flat shards, as EasyR1 trains (FSDP1).
pub(super) fn compensated(table: &mut Table) {
    let flat = table.says(Field::DataParallelEngine, "fsdp1") && table.number(Field::ZeroStage) == 3;
    let whole = matches!(table.word(Field::TrainType), "" | "full") && !table.has(Field::NumExperts);
    if table.says(Field::Optimizer, "adamw_kahan")
        && !(flat && whole && table.says(Field::ParamsDtype, "bf16") && !table.says(Field::Autocast, "bf16"))
    {
        let what =
            "an optimizer that compensates rounding, beside other weights than bf16 in flat shards (FSDP1)";
        table.lack(Field::Optimizer, "adamw_kahan", Effect::Memory, what);
    }
}

/// The optimizer; if the user continues without an unknown one, Adam's states are assumed.
pub(super) fn optimizer(table: &Table) -> Optimizer {
    let (kind, states) = kind(table);
    let format = |field| number(table.word(field)).unwrap_or(NumberFormat::Fp32);
    // A fraction is only read if its switch is on.
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
        // DeepSpeed's engine passes flat partitions to the optimizer, in which it cannot find the embedding
        // (`check_overrides`).
        whole_embedding: states == StateFormat::EightBit
            && table.on(Field::WholeEmbeddingStates)
            && table.word(Field::DataParallelEngine) != "deepspeed",
        low_rank: None,
    }
}

fn kind(table: &Table) -> (OptimizerKind, StateFormat) {
    let name = table.word(Field::Optimizer).to_owned();
    if name == "sgd" {
        // Without momentum SGD has no state; the software's default momentum is among the defaults.
        let momentum = table.real(Field::SgdMomentum).unwrap_or(0.0) > 0.0;
        let kind = if momentum { OptimizerKind::SgdMomentum } else { OptimizerKind::Sgd };
        return (kind, StateFormat::Plain);
    }
    // No name means Adam, Megatron's default.
    let known = KNOWN.iter().find(|(known, _, _)| *known == name || (name.is_empty() && *known == "adam"));
    if let Some((_, kind, states)) = known {
        return (*kind, *states);
    }
    (OptimizerKind::Adam, StateFormat::Plain)
}

pub(super) fn dp_sharding(table: &mut Table) -> DpSharding {
    // In Megatron's order of precedence: with either kind of FSDP the distributed optimizer's own sharding does not
    // apply.
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
    // Stage 0 applies unless something is requested, so it is shown as a default and not as derived.
    if stage == 0 {
        table.default(Field::ZeroStage, Int(stage), rule);
    }
    // A stated stage (DeepSpeed, a reader's rule) is kept.
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
    // Megatron's FSDP2 wrapper has these limits; trainers that call FSDP2 themselves do not set the flag.
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
