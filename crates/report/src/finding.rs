//! One piece of advice: the rules that give it are a floor above.

use shardscope_plan::Field;
use shardscope_units::{Bytes, Seconds};

/// A change that would improve the run, or a remark on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Short stable name.
    pub code: &'static str,
    /// What to do, with the values.
    pub message: String,
    /// Why, and where the rule is from.
    pub why: String,
    /// The settings to change, by name, with their new values; an empty value takes one back.
    pub change: Vec<(Field, String)>,
    /// What the changed plan comes to.
    pub expected: Expected,
}

/// What a changed plan comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Peak on the fullest device.
    pub peak_reserved: Option<Bytes>,
    /// Time of a step.
    pub step: Option<Seconds>,
}
