//! The inner width of FlagScale's gated MLPs if a multiple is given instead.

use crate::inner_width;
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

/// `multiple_of` and `hidden_dim_multiplier` of FlagScale (`megatron/training/arguments.py`).
#[derive(Clone, Debug, Default)]
pub(super) struct Multiple {
    multiple: Option<u64>,
    times: Option<f64>,
}

impl Multiple {
    /// Takes a flag's value, if it is one of these.
    pub(super) fn see(&mut self, flag: &str, value: &str) {
        match flag {
            "multiple-of" => self.multiple = value.parse().ok().filter(|multiple| *multiple > 0),
            "hidden-dim-multiplier" => self.times = value.parse().ok(),
            _ => {}
        }
    }

    /// Two thirds of four times the width, times the factor, rounded up to a multiple; each
    /// product is truncated to an integer.
    pub(super) fn state(&self, reading: &mut Reading) {
        let gated = reading.value(Field::Swiglu) == Some("true");
        let (Some(multiple), true, None) = (self.multiple, gated, reading.value(Field::FfnHiddenSize)) else {
            return;
        };
        let Some(hidden) = reading.count(Field::HiddenSize) else { return };
        let Some(width) = inner_width(hidden, self.times, multiple) else { return };
        let found = Found::new(Field::FfnHiddenSize, width.to_string(), Origin::Derived);
        reading.take(found.note("2/3 of 4 x hidden_size, up to multiple_of (FlagScale)"));
    }
}
