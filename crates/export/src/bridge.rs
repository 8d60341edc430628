//! A plan as the overrides of Megatron-Bridge: `model.tensor_model_parallel_size=8`.
//! Names: `megatron/bridge/training/config.py`, Megatron core's `TransformerConfig`.

use crate::megatron::{launch, lay, quoted_all};
use crate::round::{Exported, write};
use shardscope_launch::{Resolution, megatron};
use shardscope_plan::word::AttentionKernel;
use shardscope_plan::{Field, ValueKind, Word};

/// Settings whose keys are not `model.` plus their own name.
const KEYS: &[(Field, &str)] = &[
    (Field::NumExperts, "model.num_moe_experts"),
    (Field::DecoderFirstPipelineNumLayers, "model.num_layers_in_first_pipeline_stage"),
    (Field::DecoderLastPipelineNumLayers, "model.num_layers_in_last_pipeline_stage"),
    (Field::VirtualPipelineModelParallelSize, "model.virtual_pipeline_model_parallel_size"),
    (Field::MicroBatchSize, "train.micro_batch_size"),
    (Field::GlobalBatchSize, "train.global_batch_size"),
    (Field::RampupBatchSize, "train.rampup_batch_size"),
    (Field::DecreaseBatchSizeIfNeeded, "train.decrease_batch_size_if_needed"),
    (Field::TrainIters, "train.train_iters"),
    (Field::UseDistributedOptimizer, "ddp.use_distributed_optimizer"),
    (Field::UseMegatronFsdp, "ddp.use_megatron_fsdp"),
    (Field::DataParallelShardingStrategy, "ddp.data_parallel_sharding_strategy"),
    (Field::OverlapGradReduce, "ddp.overlap_grad_reduce"),
    (Field::OverlapParamGather, "ddp.overlap_param_gather"),
    (Field::AccumulateAllreduceGradsInFp32, "ddp.grad_reduce_in_fp32"),
    (Field::NumDistributedOptimizerInstances, "ddp.num_distributed_optimizer_instances"),
    (Field::Optimizer, "optimizer.optimizer"),
    (Field::SgdMomentum, "optimizer.sgd_momentum"),
    (Field::UsePrecisionAwareOptimizer, "optimizer.use_precision_aware_optimizer"),
    (Field::MainGradsDtype, "optimizer.main_grads_dtype"),
    (Field::MainParamsDtype, "optimizer.main_params_dtype"),
    (Field::ExpAvgDtype, "optimizer.exp_avg_dtype"),
    (Field::ExpAvgSqDtype, "optimizer.exp_avg_sq_dtype"),
    (Field::OptimizerCpuOffload, "optimizer.optimizer_cpu_offload"),
    (Field::OptimizerOffloadFraction, "optimizer.optimizer_offload_fraction"),
    (Field::TpCommOverlap, "comm_overlap.tp_comm_overlap"),
    (Field::DeferEmbeddingWgradCompute, "comm_overlap.defer_embedding_wgrad_compute"),
    (Field::WgradDeferralLimit, "comm_overlap.wgrad_deferral_limit"),
    (Field::Fp8, "model.fp8"),
    (Field::AttentionKernel, "model.attention_backend"),
];

/// Settings for which such a file has no key, or which another of its keys implies.
const NONE: &[Field] = &[
    Field::GroupQueryAttention,
    Field::Accelerator,
    Field::ZeroStage,
    Field::OffloadOptimizer,
    Field::OffloadParam,
    Field::UseFlashAttn,
    Field::UseTpPpDpMapping,
    Field::VocabFile,
    Field::TokenizerType,
    Field::TokenizerModel,
    Field::Fp4,
    Field::StepBatchSizeSchedule,
];

/// The plan as a Megatron-Bridge command.
#[must_use]
pub fn bridge_command(resolution: &Resolution) -> Exported {
    let head = launch(resolution, "run_recipe.py");
    write(resolution, &spell_words, &|said| lay(&head, said), &[])
}

/// One setting as words of a command.
pub(crate) fn spell_words(field: Field, value: &str) -> Option<String> {
    spell(field, value).map(|words| quoted_all(&words))
}

/// How a setting with this value is written if not as key and value; empty if it cannot be expressed.
const SAID: &[(Field, &str, &[&str])] = &[
    (Field::Swiglu, "true", &["model.gated_linear_unit=true", "model.activation_func=silu"]),
    (Field::QuickGeglu, "true", &["model.gated_linear_unit=true", "model.activation_func=gelu"]),
    (Field::SquaredRelu, "true", &["model.activation_func=squared_relu"]),
    (Field::Bf16, "true", &["mixed_precision=bf16_mixed"]),
    (Field::Fp16, "true", &["mixed_precision=fp16_mixed"]),
    (Field::Software, "megatron_core_local", &["model.transformer_impl=local"]),
    (Field::UntieEmbeddingsAndOutputWeights, "true", &["model.share_embeddings_and_output_weights=false"]),
    (Field::UntieEmbeddingsAndOutputWeights, "false", &["model.share_embeddings_and_output_weights=true"]),
];

/// One setting as words.
fn spell(field: Field, value: &str) -> Option<Vec<String>> {
    if NONE.contains(&field) {
        return None;
    }
    if SAID.iter().any(|(known, ..)| *known == field) {
        let (.., words) = SAID.iter().find(|(known, of, _)| *known == field && *of == value)?;
        return Some(words.iter().map(|word| (*word).to_owned()).collect());
    }
    let mut word = match KEYS.iter().find(|(known, _)| *known == field) {
        Some((_, key)) => (*key).to_owned(),
        // If Megatron has no option for it, it is not a setting of its configuration either.
        None if megatron::flags_of(field.name()).is_empty() => return None,
        None => format!("model.{}", field.name()),
    };
    word.push('=');
    word.push_str(&listed(field, value));
    Some(vec![word])
}

/// Several values as a list.
fn listed(field: Field, value: &str) -> String {
    match field.kind() {
        ValueKind::Counts | ValueKind::Words => {
            format!("[{}]", value.split_ascii_whitespace().collect::<Vec<_>>().join(","))
        }
        _ if field == Field::WindowSize => format!("[{value}]"),
        // The installed flash-attn release decides.
        _ if field == Field::AttentionKernel => match AttentionKernel::from_word(value) {
            Some(AttentionKernel::Flash3 | AttentionKernel::Flash4) => {
                AttentionKernel::Flash.word().to_owned()
            }
            _ => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}
