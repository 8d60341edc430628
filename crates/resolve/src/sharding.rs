//! The optimizer, and what data-parallel ranks shard.

use super::table::Table;
use crate::SettingValue::Int;
use crate::{Asked, Effect, Origin, Question};
use shardscope_plan::{
    DpSharding, Field, NumberFormat, Optimizer, OptimizerKind, Plan, Software, StateFormat, Word, word,
};
use shardscope_source::Code;

/// Those that keep their states in memory which CUDA may move to the host (`bitsandbytes/optim/optimizer.py:get_state_buffer`:
/// `cudaMallocManaged` from 100,000 elements on).
const PAGED: [word::Optimizer; 6] = [
    word::Optimizer::PagedAdamW,
    word::Optimizer::PagedAdamW8Bit,
    word::Optimizer::PagedLion,
    word::Optimizer::PagedLion8Bit,
    word::Optimizer::PagedAdEmaMix,
    word::Optimizer::PagedAdEmaMix8Bit,
];

/// Optimizers by the setting's names, with their kind and state format.
const KNOWN: &[(word::Optimizer, OptimizerKind, StateFormat)] = &[
    (word::Optimizer::Adam, OptimizerKind::Adam, StateFormat::Plain),
    (word::Optimizer::PagedAdamW, OptimizerKind::Adam, StateFormat::Single),
    (word::Optimizer::AdamW32Bit, OptimizerKind::Adam, StateFormat::Single),
    (word::Optimizer::AdamW8Bit, OptimizerKind::Adam, StateFormat::EightBit),
    (word::Optimizer::PagedAdamW8Bit, OptimizerKind::Adam, StateFormat::EightBit),
    (word::Optimizer::AdamW4Bit, OptimizerKind::Adam, StateFormat::FourBit),
    (word::Optimizer::AdamWFp8, OptimizerKind::Adam, StateFormat::Float8),
    // `flashoptim/optimizers.py:FlashOptimizer`, whose `master_weight_bits` is 24 unless stated.
    (word::Optimizer::FlashAdamW, OptimizerKind::Adam, StateFormat::Flash { master: 3 }),
    (word::Optimizer::FlashAdamW32, OptimizerKind::Adam, StateFormat::Flash { master: 4 }),
    (word::Optimizer::Lion, OptimizerKind::Lion, StateFormat::Plain),
    (word::Optimizer::PagedLion, OptimizerKind::Lion, StateFormat::Single),
    (word::Optimizer::Lion8Bit, OptimizerKind::Lion, StateFormat::EightBit),
    (word::Optimizer::Lion32Bit, OptimizerKind::Lion, StateFormat::Single),
    (word::Optimizer::PagedLion8Bit, OptimizerKind::Lion, StateFormat::EightBit),
    (word::Optimizer::Muon, OptimizerKind::Muon, StateFormat::Plain),
    (word::Optimizer::DistMuon, OptimizerKind::Muon, StateFormat::Plain),
    (word::Optimizer::AdaptiveMuon, OptimizerKind::Muon, StateFormat::Plain),
    (word::Optimizer::Adagrad, OptimizerKind::Adagrad, StateFormat::Plain),
    (word::Optimizer::RmsProp, OptimizerKind::SumOfSquares, StateFormat::Plain),
    (word::Optimizer::RmsProp8Bit, OptimizerKind::SumOfSquares, StateFormat::EightBit),
    (word::Optimizer::RmsProp32Bit, OptimizerKind::SumOfSquares, StateFormat::Single),
    // All from bitsandbytes (`transformers/trainer_optimizer.py:_get_bitsandbytes_optimizer`).
    (word::Optimizer::AdEmaMix, OptimizerKind::AdEmaMix, StateFormat::Single),
    (word::Optimizer::AdEmaMix8Bit, OptimizerKind::AdEmaMix, StateFormat::EightBit),
    (word::Optimizer::PagedAdEmaMix, OptimizerKind::AdEmaMix, StateFormat::Single),
    (word::Optimizer::PagedAdEmaMix8Bit, OptimizerKind::AdEmaMix, StateFormat::EightBit),
    (word::Optimizer::ScheduleFree, OptimizerKind::Adam, StateFormat::Plain),
    // Only the second sequence of weights, z (`schedulefree/sgd_schedulefree.py`).
    (word::Optimizer::ScheduleFreeSgd, OptimizerKind::SgdMomentum, StateFormat::Plain),
    (word::Optimizer::Adafactor, OptimizerKind::Adafactor, StateFormat::Plain),
    (word::Optimizer::AdamMini, OptimizerKind::AdamMini, StateFormat::Plain),
    (word::Optimizer::AdamWKahan, OptimizerKind::AdamKahan, StateFormat::Plain),
    (word::Optimizer::GaLore, OptimizerKind::Adam, StateFormat::Plain),
    (word::Optimizer::GaLore8Bit, OptimizerKind::Adam, StateFormat::EightBit),
    (word::Optimizer::Apollo, OptimizerKind::Adam, StateFormat::Plain),
    (word::Optimizer::ApolloSvd, OptimizerKind::Adam, StateFormat::Plain),
    (word::Optimizer::Soap, OptimizerKind::Soap, StateFormat::Plain),
    (word::Optimizer::Shampoo, OptimizerKind::Shampoo, StateFormat::Plain),
];

/// Asks for the closest known optimizer to one whose states are not known.
pub(super) fn ask_for_optimizer(table: &mut Table) {
    let name = table.word(Field::Optimizer).to_owned();
    table.ask(Question {
        asks: Asked::Setting(Field::Optimizer),
        prompt: format!("What {name} holds for each parameter is not modelled. Which optimizer is closest?"),
        choices: KNOWN.iter().map(|(known, _, _)| known.word().to_owned()).collect(),
        proposal: None,
    });
}

pub(super) fn lacking(table: &mut Table, software: Software) {
    super::placed::lacking(table);
    compensated(table);
    completed(table, software);
    second_shards(table, software);
    resharded_in_pipelines(table, software);
    within_backward(table, software);
    narrow_shards(table, software);
}

/// An optimizer that steps within backward is known in transformers' modules and where torchtitan shards: DDP's hooks, which keep
/// gradients as views of its buckets, were not recorded beside those of the optimizer.
fn within_backward(table: &mut Table, software: Software) {
    let titan = software == Software::Torchtitan && table.number(Field::ZeroStage) > 1;
    if table.on(Field::StepInBackward) && !software.semantics().eager_modules && !titan {
        let message = "an optimizer that steps within the backward pass, in this software or without FSDP";
        table.lack(Field::StepInBackward, "", Effect::Memory, message);
    }
}

/// Whether PyTorch's FSDP holds shards whose format is the main parameters', with which PyTorch's own Adam makes its moments.
fn holds_main_shards(software: Software) -> bool {
    let semantics = software.semantics();
    semantics.fsdp_fp32_shards && !semantics.eager_modules
}

/// Formats that torchtitan does not offer: shards in fp16, and moments in 8 bits.
fn narrow_shards(table: &mut Table, software: Software) {
    if !holds_main_shards(software) {
        return;
    }
    if table.is_format(Field::MainParamsDtype, NumberFormat::Fp16) {
        let message = "shards in fp16, which are stepped without an fp32 copy";
        table.lack(Field::MainParamsDtype, "fp16", Effect::Memory, message);
    }
    for field in [Field::ExpAvgDtype, Field::ExpAvgSqDtype] {
        let narrow = table.is_format(field, NumberFormat::Fp8);
        if narrow && !table.on(Field::UsePrecisionAwareOptimizer) {
            let message = "moments in fp8 without the precision-aware optimizer";
            table.lack(field, "fp8", Effect::Memory, message);
        }
    }
}

/// PyTorch's Adam makes moments like its parameters (`torch/optim/adam.py:_init_group`): those of 16-bit shards are in 16 bits.
pub(super) fn moments_of_shards(table: &mut Table, software: Software) {
    if holds_main_shards(software) && table.is_format(Field::MainParamsDtype, NumberFormat::Bf16) {
        for field in [Field::ExpAvgDtype, Field::ExpAvgSqDtype] {
            table.derive(field, NumberFormat::Bf16.value(), "moments in the format of the shards");
        }
    }
}

/// Units that each pass gathers anew, in a pipeline of PyTorch's: until a stage's last micro-batch nothing is resharded behind
/// backward either (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync` calls
/// `set_reshard_after_backward(False)`), so that each unit stays gathered from its backward to its next forward. Neither what is
/// then held nor what is gathered again was recorded.
fn resharded_in_pipelines(table: &mut Table, software: Software) {
    let piped = software.semantics().pipelines_hold_reductions
        && table.degree(Field::PipelineModelParallelSize) > 1
        && table.number(Field::ZeroStage) == 3;
    if piped {
        let what = "weights resharded after forward in a pipeline, whose units stay gathered from backward to their next forward; \
                    zero_stage 2 (fsdp_reshard_after_forward \"default\" or \"never\") is modelled";
        table.lack(Field::ZeroStage, "3", Effect::Memory, what);
    }
}

/// Whole gradients that wait for the last micro-batch depend on the release of a framework whose default is off: only verl's reader
/// states it as such.
pub(super) fn undated(table: &mut Table, plan: &Plan) {
    let recipe = plan.recipe();
    let by_default =
        table.get(Field::DeferReduction).is_some_and(|setting| setting.origin == Origin::Default);
    let matters = recipe.num_micro_batches > 1 && recipe.dp_sharding != DpSharding::Replicated;
    if by_default && matters && !recipe.transformers.defers_reduction && recipe.shards_by_fsdp() {
        let message = "gradients are reduced with every micro-batch; verl's main of July and August 2026, and 0.9.0 as it was first \
                       released, hold them whole until the last one: if yours is one of these, set defer_reduction=true";
        table.warn(Code::NotEstimated, Field::DeferReduction, message);
    }
}

/// Second shards (ZeRO++ hpZ) are counted of weights that all train and stay on the device: frozen ones have them too, and
/// offloaded ones have them on the host (`deepspeed/runtime/zero/partition_parameters.py:_partition_param_sec`). Below
/// stage 3 DeepSpeed makes none.
fn second_shards(table: &mut Table, software: Software) {
    let Some(ranks) = table.count(Field::SecondWeightShards).filter(|_| table.number(Field::ZeroStage) == 3)
    else {
        return;
    };
    let engine = match software {
        Software::HfTransformers => table.is(word::DataParallelEngine::DeepSpeed),
        software => software == Software::MegatronDeepspeed,
    };
    let known = engine && table.is_unset_or(&[word::TrainType::Full]) && !table.on(Field::OffloadParam);
    if !known {
        let what = "second shards of weights (ZeRO++ hpZ) where part of them is frozen or on the host, or in this software";
        table.lack(Field::SecondWeightShards, &ranks.to_string(), Effect::Memory, what);
    }
}

/// Adam with Kahan compensation is supported for bf16 weights in flat shards, as EasyR1 trains (FSDP1).
fn compensated(table: &mut Table) {
    let flat = table.is(word::DataParallelEngine::Fsdp1) && table.number(Field::ZeroStage) == 3;
    let trains_all = table.is_unset_or(&[word::TrainType::Full]) && !table.has(Field::NumExperts);
    if table.is(word::Optimizer::AdamWKahan)
        && !(flat
            && trains_all
            && table.is_format(Field::ParamsDtype, NumberFormat::Bf16)
            && !table.is(word::Autocast::Bf16))
    {
        let what =
            "an optimizer that compensates rounding, beside other weights than bf16 in flat shards (FSDP1)";
        table.lack(Field::Optimizer, "adamw_kahan", Effect::Memory, what);
    }
}

/// Weights that flashoptim's states complete are known where the optimizer steps the model's own parameters.
fn completed(table: &mut Table, software: Software) {
    let flash = table.is_any(&[word::Optimizer::FlashAdamW, word::Optimizer::FlashAdamW32]);
    let steps = software.semantics().steps_parameters && !table.is(word::DataParallelEngine::DeepSpeed);
    if flash && !steps {
        let what = "flashoptim's states in software that steps copies of the weights";
        let value = table.word(Field::Optimizer).to_owned();
        table.lack(Field::Optimizer, &value, Effect::Memory, what);
    }
}

/// The optimizer; if the user continues without an unknown one, Adam's states are assumed.
pub(super) fn optimizer(table: &Table) -> Optimizer {
    let (kind, states) = kind(table);
    let format = |field| table.format(field).unwrap_or(NumberFormat::Fp32);
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
        paged: table.chosen().is_some_and(|name: word::Optimizer| PAGED.contains(&name)),
        // DeepSpeed's engine passes flat partitions to the optimizer, in which it cannot find the embedding
        // (`check_overrides`).
        whole_embedding: states == StateFormat::EightBit
            && table.on(Field::WholeEmbeddingStates)
            && !table.is(word::DataParallelEngine::DeepSpeed),
        low_rank: None,
    }
}

fn kind(table: &Table) -> (OptimizerKind, StateFormat) {
    if table.is(word::Optimizer::Sgd) {
        // Without momentum SGD has no state; the software's default momentum is among the defaults.
        let momentum = table.real(Field::SgdMomentum).unwrap_or(0.0) > 0.0;
        let kind = if momentum { OptimizerKind::SgdMomentum } else { OptimizerKind::Sgd };
        return (kind, StateFormat::Plain);
    }
    // No name means Adam, Megatron's default.
    let name = table.chosen().unwrap_or(word::Optimizer::Adam);
    let known = KNOWN.iter().find(|(known, _, _)| *known == name);
    known.map_or((OptimizerKind::Adam, StateFormat::Plain), |(_, kind, states)| (*kind, *states))
}

pub(super) fn dp_sharding(table: &mut Table) -> DpSharding {
    // In Megatron's order of precedence: with either kind of FSDP the distributed optimizer's own sharding does not
    // apply.
    let (stage, rule) = match () {
        () if table.on(Field::UseTorchFsdp2) => (3, "PyTorch FSDP2 shards weights, gradients and states"),
        () if table.on(Field::UseMegatronFsdp) => {
            match table.chosen::<word::DataParallelShardingStrategy>() {
                Some(word::DataParallelShardingStrategy::NoShard) => (0, "Megatron-FSDP, no_shard"),
                Some(word::DataParallelShardingStrategy::Optim) => (1, "Megatron-FSDP, optim"),
                Some(word::DataParallelShardingStrategy::OptimGrads) => (2, "Megatron-FSDP, optim_grads"),
                _ => (3, "Megatron-FSDP, optim_grads_params"),
            }
        }
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
    let deepspeed = table.is_any(&[Software::MegatronDeepspeed, Software::GptNeox])
        || super::precision::sums_apart(table);
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

/// Elements of all of DeepSpeed's gradient reduction buffers. For a configuration that was not given, ZeRO-3 is assumed
/// to be as written in the documentation of transformers, LLaMA-Factory, axolotl and ms-swift; the other stages, and
/// configurations that accelerate generates from its own file, have DeepSpeed's default.
pub(super) fn reduce_buckets(table: &mut Table) -> Option<u64> {
    /// `deepspeed/runtime/zero/config.py:reduce_bucket_size`, elements.
    const ELEMENTS: u64 = 500_000_000;
    let stage = table.number(Field::ZeroStage);
    if !table.is(word::DataParallelEngine::DeepSpeed) || stage == 0 {
        return None;
    }
    // If a reinforcement-learning framework creates the configuration, its own semantics give the size.
    if !table.has(Field::RlFramework) {
        if stage == 3 && !table.has(Field::ReduceBuckets) {
            let rule = "\"auto\" in public configurations of ZeRO-3: the square of the width";
            table.default(Field::ReduceBucketSize, Int(0), rule);
        }
        table.default(Field::ReduceBucketSize, Int(ELEMENTS), "DeepSpeed's default");
        table.default(Field::ReduceBuckets, Int(1), "DeepSpeed's default");
    }
    let width = table.number(Field::HiddenSize);
    let each = match table.count(Field::ReduceBucketSize)? {
        0 => width.saturating_mul(width),
        elements => elements,
    };
    // ZeRO-3 has one for each format, whatever it overlaps (`stage3.py:_setup_for_real_optimizer`).
    let buckets = table.count(Field::ReduceBuckets).unwrap_or(1).min(if stage == 3 { 1 } else { u64::MAX });
    Some(each.saturating_mul(buckets))
}
