//! The tables that reading needs, for a program that gets them after its start.

use shardscope_source::LaterText;

use crate::formats::recipes::{BRIDGE, TITAN};
use crate::formats::{HARMLESS, NAMES, NEMO_RL, VOCABULARY};
use crate::megatron::{FLAGS, IDLE, UNMODELLED};
use crate::options;

/// Every table of this crate and of those it reads with: recipes by name, models by name, what model types are made of, what
/// NeMo-RL's own files set, names that single readers and that trainers know, what other options of frameworks change, keys of a
/// `config.json` that change nothing, and Megatron-LM's flags with those that change nothing or are not modelled. A program with the
/// feature `tables-later` has none of them until it gives each its text, and reads no script before.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    shardscope_catalog::tables().chain([
        &BRIDGE,
        &TITAN,
        &NEMO_RL,
        &NAMES,
        &FLAGS,
        &IDLE,
        &UNMODELLED,
        &options::MEGATRON,
        &options::TRAINERS,
        &VOCABULARY,
        &HARMLESS,
    ])
}
