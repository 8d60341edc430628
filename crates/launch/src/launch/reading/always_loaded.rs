//! Models that a program loads, whatever its settings say.

use super::Launch;
use crate::{Found, Origin, Reading};
use shardscope_plan::{Field, Software};

/// verl's DAPO while its files lay in `recipe/dapo/src` (April 4 to May 10, 2025, #623 to #1392): it registered the reference with
/// or without a weight for it (`main_dapo.py:role_worker_mapping`), and the trainer computed its log-probabilities. Since #1651 of
/// May 23 it is loaded when needed; of the two weeks between the name of the program tells nothing.
const PROGRAM: &str = "dapo.src.main_dapo";
const MOVED: &str = "dapo.main_dapo";
const UNDATED: &str = "neither use_kl_loss nor use_kl_in_reward; verl's DAPO of May 10 to 23, 2025, loads the reference all the \
                       same (rl_reference=host)";

impl Launch {
    pub(super) fn tell_always_loaded(&self, reading: &mut Reading) {
        let Some(program) = &self.line.program else { return };
        let module = program.text().trim_end_matches(".py").replace('/', ".");
        let is_none = reading.value(Field::RlReference) == Some("none");
        let adapts = reading.found.iter().any(|found| found.field == Field::LoraRank);
        if !is_none || adapts {
            return;
        }
        if module.ends_with(MOVED) {
            reading.take(Found::new(Field::RlReference, "none", Origin::Derived).note(UNDATED));
        }
        if !module.ends_with(PROGRAM) {
            return;
        }
        // As for any reference of verl: FSDP's is on the host.
        let megatron = matches!(reading.software, Some((Software::MegatronCoreTe, _)));
        let place = if megatron { "device" } else { "host" };
        let why = "verl's recipe/dapo/src of April 2025 always loads the reference";
        reading.take(
            Found::new(Field::RlReference, place, Origin::Derived)
                .by(program.text(), Some(program.origin()))
                .note(why),
        );
    }
}
