//! The tables that reading needs, for a program that gets them after its start.

use shardscope_source::LaterText;

use crate::formats::recipes::{BRIDGE, TITAN};
use crate::formats::{NAMES, NEMO_RL};
use crate::megatron::FLAGS;

/// Every table of this crate and of those it reads with: recipes by name, models by name, what model types are made of, what
/// NeMo-RL's own files set, names that single readers know, and Megatron-LM's flags. A program with the feature `tables-later`
/// has none of them until it gives each its text, and reads no script before.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    shardscope_catalog::tables().chain([&BRIDGE, &TITAN, &NEMO_RL, &NAMES, &FLAGS])
}
