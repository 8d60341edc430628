//! What a plan holds on each rank.

mod kept;

use crate::anatomy::{SectionKind, Symbols};
use crate::plan::Chunk;
use crate::quantity::Bytes;

/// Bytes kept from forward to backward by `chunk` for one micro-batch on one rank.
#[must_use]
pub fn kept_by_chunk(x: &Symbols<'_>, chunk: &Chunk) -> Bytes {
    let layers = kept::layers_kept(x, chunk);
    let mut sum = kept::run_input(x).bytes * layers.runs;
    sum += kept::rotary_table(x).map_or(Bytes::ZERO, |table| table.bytes);
    for (kind, times) in SectionKind::ALL.into_iter().zip(crate::anatomy::section_counts(x, chunk)) {
        let times = match kind {
            SectionKind::Layer(crate::plan::LayerKind::Dense) => layers.layers[0],
            SectionKind::Layer(crate::plan::LayerKind::Moe) => layers.layers[1],
            _ => times,
        };
        if times > 0 {
            sum += kept::section_kept(x, kind) * times;
        }
    }
    sum
}
