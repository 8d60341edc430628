//! What a column-parallel layer keeps of its input.

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::ColumnInput;

/// The kept input: the rank's part as `sharded` says, or what was gathered as `gathered` says.
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
