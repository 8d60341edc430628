//! What a column-parallel layer saves of its input.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::ColumnInput;

/// The saved input: the rank's part, described by `sharded`, or the gathered input, described by `gathered`.
pub(crate) fn input(
    x: &Symbols<'_>,
    name: &'static str,
    width: u64,
    sharded: &'static Formula,
    gathered: &'static Formula,
) -> Saved {
    match x.recipe().software.semantics().column_input {
        ColumnInput::Gathered if x.sequence_parallel => Saved::new(name, &[x.n, x.h], width, gathered),
        ColumnInput::Gathered | ColumnInput::Sharded => Saved::new(name, &[x.s_local, x.h], width, sharded),
    }
}
