//! One piece of advice; the rules that produce it are in a higher-level crate.

use shardscope_plan::Field;
use shardscope_units::{Bytes, Seconds};

/// A change that would improve the run, or a remark about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Short stable name.
    pub code: &'static str,
    /// What to do, with values.
    pub message: String,
    /// Why, and the source of the rule.
    pub why: String,
    /// The settings to change, by name, with their new values; an empty value unsets one.
    pub change: Vec<(Field, String)>,
    /// The changed plan's estimates.
    pub expected: Expected,
}

/// A changed plan's estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Peak on the fullest device.
    pub peak_reserved: Option<Bytes>,
    /// Time of a step.
    pub step: Option<Seconds>,
}
