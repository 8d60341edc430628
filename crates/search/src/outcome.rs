//! What a search reports about layouts.

use shardscope_plan::{Field, Variant};
use shardscope_source::Code;
use shardscope_units::{Bytes, Quantity, Seconds};

/// One layout whose step was estimated as for a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The layout.
    pub variant: Variant,
    /// Settings that differ from the plan that the search began with.
    pub changes: Vec<(Field, String)>,
    /// Peak on the fullest device.
    pub peak: Bytes,
    /// Whether the peak takes part of the headroom: such results rank behind those that leave it free.
    pub tight: bool,
    /// Time of a step.
    pub step: Seconds,
}

impl Outcome {
    /// The ranking key: layouts that leave the headroom free first, then the faster, then the smaller.
    pub(crate) fn rank(&self) -> (bool, f64, f64) {
        (self.tight, self.step.get(), self.peak.number())
    }

    /// Whether it belongs to the same cut as `other`: equal degrees and micro-batch, whatever else differs.
    #[must_use]
    pub fn is_of_cut(&self, other: &Variant) -> bool {
        cut(&self.variant) == cut(other)
    }
}

/// What two layouts must share for one of them to represent both in a list.
fn cut(of: &Variant) -> [u64; 6] {
    [of.tensor, of.pipeline, of.context, of.expert, of.expert_tensor, of.micro_batch_size]
}

/// How the layouts of a space were decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Layouts that the software refuses, by the first reason.
    pub refused: Vec<(Code, u64)>,
    /// Layouts that do not fit on the device.
    pub too_large: u64,
    /// Layouts that cannot be faster than a result, by a lower bound of their step.
    pub slower: u64,
    /// Layouts that were estimated as for a report.
    pub estimated: u64,
    /// Layouts whose estimate violated a physical limit: an error of the engine, never shown.
    pub faults: u64,
}

impl Tally {
    /// All decided layouts.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.refused() + self.too_large + self.slower + self.estimated + self.faults
    }

    /// All layouts that the software refuses.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }

    /// Adds another tally.
    pub(crate) fn add(&mut self, other: &Self) {
        for (code, count) in &other.refused {
            self.refuse(*code, *count);
        }
        self.too_large += other.too_large;
        self.slower += other.slower;
        self.estimated += other.estimated;
        self.faults += other.faults;
    }

    // There are only a few codes: a linear search, in the order in which they were encountered.
    pub(crate) fn refuse(&mut self, code: Code, count: u64) {
        match self.refused.iter_mut().find(|(known, _)| *known == code) {
            Some((_, known)) => *known += count,
            None => self.refused.push((code, count)),
        }
    }
}
