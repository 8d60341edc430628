//! The tables that reading needs, for a program that receives them after its start.

use shardscope_source::LaterText;

use crate::formats::recipes::{BRIDGE, TITAN};
use crate::formats::{HARMLESS, NAMES, NEMO_RL, VOCABULARY};
use crate::megatron::{FLAGS, IDLE, UNMODELLED};
use crate::options;

/// Every table of this crate and of those it reads with: recipes by name, models by name, the structure of model types,
/// the settings in NeMo-RL's own files, names that single readers and that trainers know, what other options of
/// frameworks change, keys of a `config.json` that change nothing, and Megatron-LM's flags with those that change
/// nothing or are not modelled. A program with the feature `tables-later` has none of them until it supplies the text
/// of each, and reads no script before that.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    let flags = [&FLAGS, &IDLE, &UNMODELLED, &options::MEGATRON, &options::TRAINERS];
    shardscope_catalog::tables().chain(flags).chain(reader_tables())
}

/// Those of them that only the readers of launch formats use: a program that delegates reading to another one does
/// without them. Megatron-LM's flags are not among these, because settings are written as such flags.
pub fn reader_tables() -> impl Iterator<Item = &'static LaterText> {
    [&BRIDGE, &TITAN, &NEMO_RL, &NAMES, &VOCABULARY, &HARMLESS].into_iter()
}
