//! The mesh of devices, and the batch that follows from it.

use super::stated::WHOSE;
use crate::leaves::Leaves;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// `per_device_batch_size` of `base.yml`. Unit: sequence.
const BATCH: f64 = 12.0;

/// Degrees: the product of the sizes within a slice and across slices. One axis of each takes the remaining devices
/// (-1): by default the one that shards.
pub(super) fn read(leaves: &mut Leaves<'_>, whole: bool) {
    const AXES: [(&str, Field); 4] = [
        ("tensor", Field::TensorModelParallelSize),
        ("pipeline", Field::PipelineModelParallelSize),
        ("context", Field::ContextParallelSize),
        ("expert", Field::ExpertModelParallelSize),
    ];
    // Experts are spread over ranks with samples of their own; ranks along the other axes share samples.
    let mut shares = 1;
    for (axis, field) in AXES {
        let mut degree = 1;
        for reach in ["ici", "dcn"] {
            let path = format!("{reach}_{axis}_parallelism");
            let Some(leaf) = leaves.get(&path) else { continue };
            match leaf.whole() {
                Some(size) => degree = u64::saturating_mul(degree, size.max(1)),
                None => {
                    leaves.lack(leaf, Effect::Communication, "a mesh axis that takes all remaining devices");
                }
            }
        }
        if let Some(leaf) = leaves.get(&format!("ici_{axis}_parallelism")).filter(|_| degree > 1) {
            leaves.say(field, &degree.to_string(), leaf);
        }
        if field != Field::ExpertModelParallelSize {
            shares = u64::saturating_mul(shares, degree);
        }
    }
    for axis in
        ["tensor_sequence", "sequence", "fsdp_transpose", "context_usp_ulysses", "autoregressive", "diloco"]
    {
        for reach in ["ici", "dcn"] {
            if let Some(leaf) =
                leaves.get(&format!("{reach}_{axis}_parallelism")).filter(|leaf| leaf.whole() != Some(1))
            {
                leaves.lack(
                    leaf,
                    Effect::Communication,
                    "a MaxText mesh axis with no counterpart in other trainers",
                );
            }
        }
    }
    let alone = |path: &str| leaves.text(path) == Some("1");
    let copied =
        alone("ici_fsdp_parallelism") && leaves.whole("dcn_fsdp_parallelism").is_none_or(|size| size == 1);
    let stage = if copied { "0" } else { "3" };
    leaves.pass_below(&["ici_", "dcn_"]);
    leaves.state(Field::ZeroStage, stage, Origin::Derived, "ici_fsdp_parallelism of MaxText");
    leaves.state(Field::NumMicroBatches, "1", Origin::Default, WHOSE);
    // The batch is counted per device, regardless of which devices share a sample (`calculate_global_batch_sizes`).
    let batch = leaves.get("per_device_batch_size");
    let each = batch.map_or(whole.then_some(BATCH), |leaf| leaf.value.parse::<f64>().ok());
    let Some(micro) = each.map(|each| each * shares as f64) else { return };
    match batch {
        Some(leaf) if micro >= 1.0 && micro.fract() == 0.0 => {
            leaves.say(Field::MicroBatchSize, &format!("{micro:.0}"), leaf);
        }
        Some(leaf) => leaves.lack(leaf, Effect::Memory, "sequences sharded over devices"),
        None => leaves.state(Field::MicroBatchSize, &format!("{micro:.0}"), Origin::Default, WHOSE),
    }
}
