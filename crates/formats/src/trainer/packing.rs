//! Samples joined to packs.

use super::dialect::Dialect;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// The switches of each trainer, and the length of ms-swift's packs.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    for path in ["packing", "sample_packing", "padding_free", "neat_packing"] {
        if let Some(leaf) = leaves.yes(path) {
            leaves.switch(Field::Packing, true, leaf);
        }
    }
    // ms-swift's packs, which may be longer than the longest sample (`swift/dataset/packing.py`).
    if dialect == Dialect::Swift
        && let Some(leaf) = leaves.get("packing_length").filter(|_| leaves.flag("packing") == Some(true))
    {
        leaves.reading.keep(&|found| found.field != Field::SeqLength);
        leaves.take(&["packing_length"], Field::SeqLength);
        leaves.pass(&leaf.path);
    }
}
