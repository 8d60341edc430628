//! What a column-parallel layer saves of its input.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;

/// The saved input: the rank's part, described by `sharded`, or the gathered input, described by `gathered`.
pub(crate) fn input(
    x: &Symbols<'_>,
    name: &'static str,
    width: u64,
    sharded: &'static Formula,
    gathered: &'static Formula,
) -> Saved {
    if x.recipe().transformers.gathered_inputs && x.sequence_parallel {
        return Saved::new(name, &[x.n, x.h], width, gathered);
    }
    Saved::new(name, &[x.s_local, x.h], width, sharded)
}
