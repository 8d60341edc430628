//! The effect of PEFT's `prepare_model_for_kbit_training` on a model that the program loaded
//! (`peft/utils/other.py`): weights that are not quantized are cast to fp32, and the layers of a quantized model are
//! checkpointed, whatever the trainer's arguments say.

use super::known::Known;
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;

/// The call, and its name until PEFT 0.10.
const CALLS: [&str; 2] = ["prepare_model_for_kbit_training", "prepare_model_for_int8_training"];

/// Whether a call is this one.
pub(super) fn is_call(name: &str) -> bool {
    CALLS.contains(&name)
}

/// The call to it that runs, or may run.
#[derive(Default)]
pub(super) struct Preparation {
    called: bool,
    /// Whether it enables checkpointing of layers; `None` if the program computes that.
    checkpoints: Option<bool>,
    /// Whether it is under an undecided condition.
    unsure: bool,
}

impl Preparation {
    /// Records a call with these arguments; `runs` as far as conditions on the program's options tell.
    pub(super) fn add(&mut self, runs: Option<bool>, arguments: &str, open: usize, known: &Known<'_>) {
        const KEY: &str = "use_gradient_checkpointing=";
        if runs == Some(false) {
            return;
        }
        let bare: String = arguments.split_ascii_whitespace().collect();
        // By keyword, or as the second positional argument.
        let (_, rest) = bare.split_once(KEY).or_else(|| bare.split_once(',')).unzip();
        let given = rest.map(|rest| rest.split([',', ')']).next().unwrap_or(rest));
        let given = given.filter(|given| !given.is_empty() && !given.contains('='));
        self.checkpoints = match given {
            None => Some(true),
            Some("True") => Some(true),
            Some("False") => Some(false),
            Some(written) => known.value(written, open).map(|value| value.eq_ignore_ascii_case("true")),
        };
        (self.called, self.unsure) = (true, runs.is_none());
    }

    /// States its effect on the model.
    pub(super) fn tell(&self, reading: &mut Reading) {
        let note = CALLS[0];
        if self.unsure {
            let what = "weights that are cast to fp32 and layers that are checkpointed under a condition that the text does not decide";
            reading.not_modelled.push(NotModelled::new(note, "", Effect::Memory, what));
        }
        if !self.called || self.unsure {
            return;
        }
        let quantized = !matches!(reading.value(Field::BaseQuantization), None | Some("" | "none"));
        let mut say = |field, value: &str| {
            reading.take(Found::new(field, value, Origin::Derived).note(note));
        };
        if !quantized {
            return say(Field::ParamsDtype, "fp32");
        }
        say(Field::UpcastNonQuantized, "true");
        if self.checkpoints == Some(true) {
            say(Field::GradientCheckpointing, "true");
        }
    }
}
