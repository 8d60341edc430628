//! `report.advice`.

use serde::Serialize;

use super::tree::Object;
use crate::Finding;
use shardscope_units::{Bytes, Seconds};

/// A change that would improve the run, or a remark about it.
#[derive(Debug, Serialize)]
pub struct Advice<'r> {
    /// Short stable name.
    pub code: &'static str,
    /// What to do, with the values.
    pub message: &'r str,
    /// Why, and the source of the rule.
    pub why: &'r str,
    /// The settings to change with their new values; an empty value unsets one.
    pub change: Object<&'static str, &'r str>,
    /// The changed plan's estimates.
    pub expected: Expected,
}

/// A changed plan's estimates; null if it was not estimated.
#[derive(Debug, Serialize)]
pub struct Expected {
    /// Time of a step.
    pub step_seconds: Option<Seconds>,
    /// Peak on the fullest device.
    pub peak_reserved: Option<Bytes>,
}

impl<'r> Advice<'r> {
    pub(super) fn new(finding: &'r Finding) -> Self {
        Self {
            code: finding.code,
            message: &finding.message,
            why: &finding.why,
            change: Object(
                finding.change.iter().map(|(field, value)| (field.name(), value.as_str())).collect(),
            ),
            expected: Expected {
                step_seconds: finding.expected.step,
                peak_reserved: finding.expected.peak_reserved,
            },
        }
    }
}
