//! Arguments whose meaning depends on how early a release of TRL a settings file belongs to.

use crate::leaves::{Leaf, Leaves};

/// `max_length` in a file of a time when it was an argument of TRL's trainers for pairs alone: SFT's was
/// `max_seq_length` until TRL 0.16 (`trl/trainer/sft_config.py`), later than transformers 4.46, which took
/// `evaluation_strategy` away.
pub(super) fn length_of_pairs<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    let early = leaves.has("evaluation_strategy") && !leaves.has("max_seq_length");
    leaves.get("max_length").filter(|_| early)
}
