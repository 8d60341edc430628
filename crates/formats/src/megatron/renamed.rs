//! Flags that Megatron-LM renamed or dropped, and their meaning today (history of 21 releases).

use shardscope_plan::Field;

/// A former flag.
#[derive(Debug)]
pub(super) struct Renamed {
    /// Without dashes.
    pub(super) old: &'static str,
    /// The settings that it states, each with a fixed value or the flag's argument.
    pub(super) states: &'static [(Field, Option<&'static str>)],
    /// The flag to use today.
    pub(super) today: &'static str,
}

const fn renamed(
    old: &'static str,
    states: &'static [(Field, Option<&'static str>)],
    today: &'static str,
) -> Renamed {
    Renamed { old, states, today }
}

const NONE: &[(Field, Option<&str>)] = &[];

/// All former flags.
const RENAMED: &[Renamed] = &[
    renamed("batch-size", &[(Field::MicroBatchSize, None)], "--micro-batch-size"),
    renamed("model-parallel-size", &[(Field::TensorModelParallelSize, None)], "--tensor-model-parallel-size"),
    renamed("encoder-num-layers", &[(Field::NumLayers, None)], "--num-layers"),
    renamed("encoder-seq-length", &[(Field::SeqLength, None)], "--seq-length"),
    renamed(
        "checkpoint-activations",
        &[(Field::CheckpointActivations, Some("true"))],
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
    ),
    renamed("checkpoint-num-layers", &[(Field::RecomputeNumLayers, None)], "--recompute-num-layers"),
    renamed(
        "activations-checkpoint-method",
        &[(Field::RecomputeGranularity, Some("full")), (Field::RecomputeMethod, None)],
        "--recompute-granularity full --recompute-method",
    ),
    renamed(
        "activations-checkpoint-num-layers",
        &[(Field::RecomputeNumLayers, None)],
        "--recompute-num-layers",
    ),
    renamed(
        "distribute-checkpointed-activations",
        &[(Field::DistributeSavedActivations, Some("true"))],
        "--distribute-saved-activations",
    ),
    renamed(
        "fp32-allreduce",
        &[(Field::AccumulateAllreduceGradsInFp32, Some("true"))],
        "--accumulate-allreduce-grads-in-fp32",
    ),
    renamed("fp8-e4m3", &[(Field::Fp8, Some("e4m3"))], "--fp8-format e4m3"),
    renamed("fp8-hybrid", &[(Field::Fp8, Some("hybrid"))], "--fp8-format hybrid"),
    renamed("use-custom-fsdp", &[(Field::UseMegatronFsdp, Some("true"))], "--use-megatron-fsdp"),
    renamed(
        "external-cuda-graph",
        &[(Field::CudaGraphImpl, Some("transformer_engine"))],
        "--cuda-graph-impl transformer_engine",
    ),
    renamed("enable-cuda-graph", &[(Field::CudaGraphImpl, Some("local"))], "--cuda-graph-impl local"),
    renamed(
        "moe-layer-recompute",
        &[(Field::MoeLayerRecompute, Some("true"))],
        "--recompute-granularity selective --recompute-modules moe",
    ),
    renamed(
        "moe-enable-deepep",
        &[(Field::MoeEnableDeepep, Some("true"))],
        "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep",
    ),
    renamed(
        "no-query-key-layer-scaling",
        &[(Field::ApplyQueryKeyLayerScaling, Some("false"))],
        "nothing: off unless asked for",
    ),
    renamed(
        "overlap-p2p-communication",
        &[(Field::OverlapP2pComm, Some("true"))],
        "nothing: on when interleaved",
    ),
    renamed("DDP-impl", NONE, "nothing: local is the only one"),
    renamed("no-contiguous-buffers-in-local-ddp", NONE, "nothing: buffers are always contiguous"),
    renamed("use-contiguous-buffers-in-ddp", NONE, "nothing: buffers are always contiguous"),
    renamed("warmup", NONE, "--lr-warmup-fraction"),
    renamed("layernorm-epsilon", NONE, "--norm-epsilon"),
    renamed("moe-extended-tp", NONE, "--expert-tensor-parallel-size"),
    renamed("moe-token-dropping", NONE, "--moe-expert-capacity-factor"),
    renamed("no-delay-grad-reduce", NONE, "--no-align-grad-reduce"),
    renamed("standalone-embedding-stage", NONE, "--account-for-embedding-in-pipeline-split"),
    renamed("no-scatter-gather-tensors-in-pipeline", NONE, "nothing: it has had no effect since 23.04"),
];

/// The meaning of a former flag today.
pub(super) fn find(name: &str) -> Option<&'static Renamed> {
    RENAMED.iter().find(|renamed| renamed.old == name)
}

/// The former flag that states exactly this value of a setting.
pub(super) fn stating(field: Field, value: &str) -> Option<&'static str> {
    RENAMED
        .iter()
        .find(|renamed| matches!(renamed.states, [(known, Some(text))] if *known == field && *text == value))
        .map(|renamed| renamed.old)
}

#[cfg(test)]
mod tests {
    use super::RENAMED;
    use crate::megatron::flags;

    #[test]
    fn every_old_flag_was_one() {
        for renamed in RENAMED {
            assert!(flags::find(renamed.old).is_some(), "{}", renamed.old);
        }
    }
}
