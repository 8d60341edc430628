//! Training steps that one compiler lays out as a whole: peak memory is known only for those that were actually
//! compiled (`tests/data/maxtext`).

use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::limits::{COMPILED_DEVICES, COMPILED_LANES, COMPILED_WIDTH};
use crate::{
    Activation, Arrangement, AttentionKernel, BaseTraining, DpSharding, Field, LinearBias, Mixers,
    Normalization, OptimizerKind, Plan, PositionEmbedding, Recompute, Software, StateFormat,
};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (model, recipe, layout) = (plan.model(), plan.recipe(), plan.layout());
    let watched = &Rule {
        code: Code::CompiledStep,
        fields: &[Field::WatchedNorms],
        sentence: "only levanter has steps of another program that take norms of gradients and weights",
        hint: "leave the watched norms out",
    };
    refusals.unless(!recipe.watched_norms || recipe.software == Software::Levanter, watched, &[]);
    if !recipe.software.semantics().compiled_step {
        let named = &Rule {
            code: Code::CompiledStep,
            fields: &[Field::NamedTensors],
            sentence: "only layers recomputed by jax.checkpoint keep tensors by name",
            hint: "leave the named tensors out",
        };
        return refusals.unless(recipe.named.is_empty(), named, &[]);
    }
    let cut = [layout.tensor, layout.pipeline, layout.context, layout.expert].iter().any(|size| *size > 1);
    let llama = model.arrangement == Arrangement::default()
        && model.mixers == Mixers::default()
        && model.normalization == Normalization::RmsNorm
        && model.activation == Activation::Swiglu
        && model.position_embedding == PositionEmbedding::Rope
        && model.linear_bias == LinearBias::None
        && model.mtp_num_layers == 0;
    let dense = model.experts.is_none() && model.latent.is_none() && model.vision.is_none();
    let trains_all = recipe.tuning.lora.is_none() && recipe.tuning.base == BaseTraining::All;
    let adam = recipe.optimizer.kind == OptimizerKind::Adam && recipe.optimizer.states == StateFormat::Plain;
    let again = matches!(recipe.recompute, Recompute::Uniform { num_layers: 1, .. });
    let compiled = plan.cluster().accelerator.tpu;
    for (holds, fields, sentence, hint) in [
        (
            compiled,
            &[Field::Accelerator][..],
            "not modelled: a JAX trainer on accelerators for which no whole step was compiled",
            "choose TPU-v5e, TPU-v5p or TPU-v6e",
        ),
        (
            !cut && recipe.dp_sharding == DpSharding::Parameters
                && layout.distributed_optimizer_instances <= 1,
            &[
                Field::ZeroStage,
                Field::TensorModelParallelSize,
                Field::PipelineModelParallelSize,
                Field::ContextParallelSize,
                Field::ExpertModelParallelSize,
            ],
            "not modelled: axes of a JAX trainer's mesh other than fsdp",
            "leave the sizes at 1 and the ZeRO stage at 3",
        ),
        (
            COMPILED_DEVICES.contains(&layout.world_size),
            &[Field::WorldSize, Field::NumNodes],
            "not modelled: a JAX trainer over fewer than 4 devices or more than 64, whose steps were not compiled",
            "set the devices to 4 to 64",
        ),
        (
            again && recipe.num_micro_batches == 1,
            &[Field::RecomputeGranularity, Field::NumMicroBatches],
            "not modelled: a JAX trainer that does not recompute every layer, or accumulates gradients",
            "recompute every layer, in one micro-batch a step",
        ),
        (
            llama
                && dense
                && recipe.attention_kernel == AttentionKernel::Flash
                && model.hidden_size >= COMPILED_WIDTH,
            &[Field::AttentionKernel, Field::HiddenSize, Field::NumExperts, Field::MultiLatentAttention],
            "not modelled: a JAX trainer with layers other than Llama's with flash attention, or narrower than 1024",
            "",
        ),
        (
            recipe.named.is_empty() || model.kv_channels.is_multiple_of(COMPILED_LANES),
            &[Field::NamedTensors, Field::KvChannels],
            "not modelled: tensors kept by name with heads that do not fill a TPU's rows of 128, whose padding is not known",
            "keep none by name",
        ),
        (
            recipe.transformers.evaluation_batch <= recipe.micro_batch_size,
            &[Field::EvaluationBatchSize],
            "not modelled: evaluation of a JAX trainer in larger batches than training's, whose program was not compiled",
            "evaluate in batches of the training's size",
        ),
        (
            trains_all && adam && recipe.fp8.is_none(),
            &[Field::Optimizer, Field::TrainType, Field::Fp8],
            "not modelled: a JAX trainer with other than all weights trained by Adam in bf16",
            "",
        ),
    ] {
        let rule = &Rule { code: Code::CompiledStep, fields, sentence, hint };
        refusals.unless(holds, rule, &[]);
    }
}
