//! An encoder in front of the decoder, as transformers' Trainer runs it: layers were recorded whole, one by one or not recomputed, on
//! accelerators that hold all of the model (`tests/data/activations/encoder_decoder.jsonl`).

use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::{
    Activation, ActivationSteps, Arrangement, AttentionKernel, AttentionSoftmax, BaseTraining, DataEngine,
    DpSharding, Field, LinearBias, LinearModule, LossKind, Mixers, NormProduct, Normalization, NumberFormat,
    Objective, Plan, PositionEmbedding, Quantization, Recompute, Software,
};
use shardscope_source::Code;

/// What is known of it; everything else is refused by name.
pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let Some(encoder) = plan.model().encoder else { return };
    let (recipe, layout) = (plan.recipe(), plan.layout());
    let (tuning, transformers) = (&recipe.tuning, &recipe.transformers);
    let whole = [layout.tensor, layout.pipeline, layout.context, layout.expert];
    let engine = transformers.engine == DataEngine::Ddp && recipe.dp_sharding == DpSharding::Replicated;
    let recomputed = matches!(recipe.recompute, Recompute::None | Recompute::Uniform { num_layers: 1, .. });
    let offload = &recipe.offload;
    let stays = !(offload.layer_inputs
        || offload.every_input
        || offload.saved_tensors
        || offload.parameters
        || offload.optimizer)
        && offload.modules.is_empty()
        && offload.activation_layers == 0;
    let frozen = tuning.base == BaseTraining::All && tuning.lora.is_none();
    let adapted = tuning.base == BaseTraining::None
        && tuning.lora.is_some_and(|lora| {
            let ends = [LinearModule::Embedding, LinearModule::OutputLayer];
            use LinearModule::{Key, Output, Query, Value};
            // Gradients then flow from every attention on, the first one's included.
            let attends = [Query, Key, Value, Output].into_iter().any(|module| lora.modules.has(module));
            attends
                && !lora.dora
                && !lora.drops_result
                && !ends.into_iter().any(|module| lora.modules.has(module))
        });
    let model = plan.model();
    let arrangement = &model.arrangement;
    // A stack as T5's: what is not among these fields would change both stacks or one, in ways that were not recorded.
    let of_t5 = Arrangement {
        norm_product: NormProduct::Uncast,
        activation_steps: arrangement.activation_steps,
        dropout: arrangement.dropout,
        ..Arrangement::default()
    };
    let like_t5 = *arrangement == of_t5
        && matches!(
            arrangement.activation_steps,
            ActivationSteps::Kernel | ActivationSteps::NewGelu | ActivationSteps::Relu
        )
        && model.mixers == Mixers::default()
        && model.attention_softmax == AttentionSoftmax::Vanilla
        && model.num_query_groups == model.num_attention_heads
        && model.activation != Activation::SquaredRelu
        && model.latent.is_none()
        && model.vision.is_none();
    let ends = !(tuning.copies || (tuning.lora.is_some() && (tuning.embedding || tuning.head)));
    for (holds, fields, sentence) in [
        (encoder.layers > 0, &[Field::EncoderLayers][..], "an encoder has at least one layer"),
        (
            model.experts.is_none(),
            &[Field::NumExperts, Field::EncoderLayers],
            "not modelled: an encoder-decoder with experts",
        ),
        (
            model.mtp_num_layers == 0,
            &[Field::MtpNumLayers, Field::EncoderLayers],
            "not modelled: an encoder-decoder with multi-token prediction",
        ),
        (
            model.normalization == Normalization::RmsNorm && !model.qk_layernorm,
            &[Field::Normalization, Field::QkLayernorm, Field::EncoderLayers],
            "not modelled: an encoder-decoder with LayerNorm, or with norms of queries and keys",
        ),
        (
            model.position_embedding == PositionEmbedding::None,
            &[Field::PositionEmbeddingType, Field::EncoderLayers],
            "not modelled: an encoder-decoder with other positions than T5's table of distances",
        ),
        (
            model.linear_bias == LinearBias::None,
            &[Field::AddBiasLinear, Field::AddQkvBias, Field::EncoderLayers],
            "not modelled: an encoder-decoder with biases of linear layers",
        ),
        (
            like_t5,
            &[Field::EncoderLayers, Field::ModuleVariants, Field::NumQueryGroups, Field::MixerPattern],
            "not modelled: an encoder-decoder whose layers are arranged otherwise than T5's",
        ),
        (
            recipe.software == Software::HfTransformers && recipe.rollout.is_none(),
            &[Field::EncoderLayers],
            "not modelled: an encoder-decoder in other software than transformers' Trainer (hf_transformers)",
        ),
        (
            whole.iter().all(|degree| *degree == 1),
            &[
                Field::TensorModelParallelSize,
                Field::PipelineModelParallelSize,
                Field::ContextParallelSize,
                Field::EncoderLayers,
            ],
            "not modelled: an encoder-decoder cut over several accelerators",
        ),
        (
            engine,
            &[Field::DataParallelEngine, Field::ZeroStage, Field::EncoderLayers],
            "not modelled: an encoder-decoder under FSDP or DeepSpeed",
        ),
        (
            recomputed,
            &[Field::RecomputeGranularity, Field::EncoderLayers],
            "not modelled: an encoder-decoder of which some layers or modules are recomputed",
        ),
        (
            stays && recipe.optimizer.low_rank.is_none() && !transformers.steps_in_backward,
            &[Field::OffloadModules, Field::EncoderLayers],
            "not modelled: an encoder-decoder with tensors on the host, or stepped in low rank or within backward",
        ),
        (
            (frozen || adapted) && ends,
            &[Field::TrainType, Field::LoraTargetModules, Field::EncoderLayers],
            "not modelled: an encoder-decoder of which parts train, or with adapters on its ends, on MLPs alone or DoRA's",
        ),
        (
            tuning.quantization == Quantization::None
                && !tuning.upcast
                && recipe.params_dtype != NumberFormat::Fp16,
            &[Field::BaseQuantization, Field::Fp16, Field::EncoderLayers],
            "not modelled: an encoder-decoder with quantized weights, or with weights in fp16",
        ),
        (
            tuning.objective == Objective::NextToken && recipe.sample_length.is_none(),
            &[Field::TrainingObjective, Field::EncoderLayers],
            "not modelled: an encoder-decoder with another loss than the cross entropy of each sample's labels",
        ),
        (
            matches!(recipe.loss, LossKind::Torch | LossKind::TorchNarrow)
                && !(transformers.liger_norms || transformers.liger_gates || recipe.fusions.compiled_layers)
                && matches!(recipe.attention_kernel, AttentionKernel::Sdpa | AttentionKernel::Unfused),
            &[Field::LossKind, Field::AttnImplementation, Field::EncoderLayers],
            "not modelled: an encoder-decoder with kernels of Liger, compiled layers or attention other than SDPA's and eager",
        ),
        (
            transformers.evaluation_batch == 0,
            &[Field::EncoderLayers],
            "not modelled: evaluations of an encoder-decoder between steps",
        ),
    ] {
        refusals.unless(holds, &Rule { code: Code::NotModelled, fields, sentence, hint: "" }, &[]);
    }
}
