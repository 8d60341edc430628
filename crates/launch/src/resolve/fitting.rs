//! The smallest number of machines that a layout fits on.

use super::table::Table;
use shardscope_plan::Field;

/// Multiples of the smallest cluster that are tried for one over which the global batch divides.
const TRIED: u64 = 64;

/// The fewest nodes of `per_node` accelerators that all ranks of the layout fill: a multiple of TP x PP x CP and of
/// ETP x EP x PP, and one whose replicas share the global batch evenly, where there is one.
pub(super) fn nodes(table: &Table, per_node: u64) -> u64 {
    let per_node = per_node.max(1);
    let dense = table.ranks_of_one();
    let tensor = table.degree(Field::TensorModelParallelSize);
    let expert = table.degree(Field::ExpertModelParallelSize);
    let expert_tensor = table.count(Field::ExpertTensorParallelSize).unwrap_or(tensor).max(1);
    let pipeline = table.degree(Field::PipelineModelParallelSize);
    let experts = if table.number(Field::NumExperts) > 0 {
        expert_tensor.saturating_mul(expert).saturating_mul(pipeline)
    } else {
        1
    };
    let ranks = common(common(dense, experts), per_node);
    let fewest = (ranks / per_node).max(1);
    let slice = table.degree(Field::MicroBatchSize);
    let divides = |times: &u64| {
        let replicas = ranks.saturating_mul(*times) / dense.max(1);
        let global = table.count(Field::GlobalBatchSize).filter(|global| *global > 0);
        global.is_none_or(|global| global.is_multiple_of(slice.saturating_mul(replicas).max(1)))
    };
    let times = (1..=TRIED).find(divides).unwrap_or(1);
    fewest.saturating_mul(times)
}

/// The least common multiple; the first where it would leave 64 bits.
fn common(a: u64, b: u64) -> u64 {
    let (a, b) = (a.max(1), b.max(1));
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).unwrap_or(a)
}

#[cfg(test)]
mod tests {
    use crate::{Argument, megatron, resolve};
    use shardscope_plan::Field;

    fn proposed(line: &str, name: &str) -> Option<String> {
        let shape = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --micro-batch-size 1 \
            --vocab-size 50257 --bf16";
        let resolution = resolve(&[megatron::read(&Argument::split(&format!("{shape} {line}")))], &[]);
        assert!(resolution.plan.is_none(), "{line}");
        resolution.questions.into_iter().find(|asked| asked.name == name)?.proposal
    }

    #[test]
    fn machines_are_proposed_that_the_layout_fits_on() {
        let world = Field::WorldSize.name();
        let layout = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16";
        assert_eq!(proposed(layout, world).as_deref(), Some("128"));
        let batch =
            format!("{layout} --global-batch-size 1536 --expert-model-parallel-size 32 --num-experts 32");
        assert_eq!(proposed(&batch, world).as_deref(), Some("4096"), "ETP is TP unless given: 8 x 32 x 16");
        // One node, as on the machine that the script was written on: TP x PP does not fit.
        let stated = format!("{layout} --world-size 8");
        assert_eq!(proposed(&stated, Field::NumNodes.name()).as_deref(), Some("16"));
    }
}
