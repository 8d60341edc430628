//! The keys that readers of settings files take as they are, for those who look one up. Keys that need more than a look
//! (precision, sharding, recomputation, experts) are read in code and are not among them.

use super::{Format, huggingface, nanotron, nemo, neox, titan};
use shardscope_plan::Field;

/// Every such key with its format and its setting.
#[must_use]
pub fn keys() -> Vec<(Format, &'static str, Field)> {
    let mut all = Vec::new();
    let flat = [
        (Format::GptNeox, neox::PLAIN),
        (Format::Nanotron, nanotron::PLAIN),
        (Format::Nemo, nemo::MODEL),
        (Format::Nemo, nemo::OUTSIDE),
    ];
    for (format, table) in flat {
        all.extend(table.iter().map(|(key, field)| (format, *key, *field)));
    }
    for (format, table) in [(Format::Torchtitan, titan::PLAIN), (Format::HuggingFace, huggingface::PLAIN)] {
        for (names, field) in table {
            all.extend(names.iter().map(|key| (format, *key, *field)));
        }
    }
    all
}
