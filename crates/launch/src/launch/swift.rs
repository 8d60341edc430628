//! What ms-swift's `megatron` command sets where the text says nothing
//! (`swift/megatron/arguments/megatron_args.py:MegatronArguments`, 4.x of August 2026).

use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

const DEFAULTS: &[(Field, &str)] = &[
    (Field::UseDistributedOptimizer, "true"),
    (Field::MicroBatchSize, "1"),
    (Field::GlobalBatchSize, "16"),
    (Field::RecomputeGranularity, "selective"),
    (Field::ApplyRopeFusion, "false"),
    (Field::CrossEntropyLossFusion, "true"),
    (Field::AttentionBackend, "flash"),
    (Field::AttentionSoftmaxInFp32, "true"),
    (Field::OverlapGradReduce, "false"),
    (Field::OverlapParamGather, "false"),
    (Field::MoeTokenDispatcherType, "alltoall"),
    (Field::MoeGroupedGemm, "true"),
    (Field::MoePermuteFusion, "false"),
    (Field::MoeRouterDtype, "fp32"),
];

/// The number format of the checkpoint, which all models of its list hold in bf16, and gradients summed in fp32.
const PRECISION: &[(Field, &str)] = &[(Field::Bf16, "true"), (Field::AccumulateAllreduceGradsInFp32, "true")];

/// Adds what the command sets by itself.
pub(super) fn defaults(reading: &mut Reading) {
    let says = |reading: &Reading, field: Field| reading.found.iter().any(|found| found.field == field);
    let fp16 = says(reading, Field::Fp16);
    let precision = if fp16 { &[][..] } else { PRECISION };
    for (field, value) in DEFAULTS.iter().chain(precision) {
        if !says(reading, *field) {
            reading.take(
                Found::new(*field, *value, Origin::Default).note("default of ms-swift's megatron command"),
            );
        }
    }
}
