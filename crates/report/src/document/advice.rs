//! `report.advice`.

use serde::Serialize;

use super::tree::Object;
use crate::Finding;
use shardscope_units::{Bytes, Seconds};

/// A change that would improve the run, or a remark on it.
#[derive(Debug, Serialize)]
pub struct Advice<'r> {
    /// Short stable name.
    pub code: &'static str,
    /// What to do, with the values.
    pub message: &'r str,
    /// Why, and where the rule is from.
    pub why: &'r str,
    /// The settings to change with their new values; an empty value takes one back.
    pub change: Object<&'static str, &'r str>,
    /// What the changed plan comes to.
    pub expected: Expected,
}

/// What a changed plan comes to; null where that was not estimated.
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
