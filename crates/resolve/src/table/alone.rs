//! Whether a run has a single rank.

use crate::Reading;
use shardscope_plan::Field;

/// Whether a single accelerator is stated, by the user or by a text.
pub(super) fn is_alone(readings: &[Reading], overrides: &[(String, String)]) -> bool {
    let set = |field: Field| {
        let own = overrides.iter().rev().find(|(name, _)| Field::named(name) == Some(field));
        own.map(|(_, value)| value.as_str())
            .or_else(|| readings.iter().find_map(|reading| reading.value(field)))
    };
    let one_node = set(Field::NumNodes).is_none_or(|nodes| nodes == "1");
    set(Field::WorldSize) == Some("1") || set(Field::GpusPerNode) == Some("1") && one_node
}
