//! What a search has to say of layouts.

use shardscope_plan::{Field, Variant};
use shardscope_source::Code;
use shardscope_units::{Bytes, Quantity, Seconds};

/// One layout whose step was worked out as a report does.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The layout.
    pub variant: Variant,
    /// Settings that differ from the plan the search began with.
    pub changes: Vec<(Field, String)>,
    /// Peak on the fullest device.
    pub peak: Bytes,
    /// Whether the peak leaves less than the headroom: such results stand behind those that leave it free.
    pub tight: bool,
    /// Time of a step.
    pub step: Seconds,
}

impl Outcome {
    /// What stands first: layouts that leave the headroom free, then the faster, then the smaller.
    pub(crate) fn rank(&self) -> (bool, f64, f64) {
        (self.tight, self.step.get(), self.peak.number())
    }

    /// Whether it is of the same cut as `other`: equal degrees and micro-batch, whatever else differs.
    #[must_use]
    pub fn is_of_cut(&self, other: &Variant) -> bool {
        cut(&self.variant) == cut(other)
    }
}

/// What two layouts must share for one of them to stand for both in a list.
fn cut(of: &Variant) -> [u64; 6] {
    [of.tensor, of.pipeline, of.context, of.expert, of.expert_tensor, of.micro_batch_size]
}

/// How the layouts of a space were decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What the software refuses, by the first reason.
    pub refused: Vec<(Code, u64)>,
    /// What does not fit on the device.
    pub too_large: u64,
    /// What cannot be faster than what was found, by a lower bound of its step.
    pub slower: u64,
    /// What was worked out as a report does.
    pub estimated: u64,
    /// What broke a law of the machine: a fault of the engine, never shown.
    pub faults: u64,
}

impl Tally {
    /// All that were decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.refused() + self.too_large + self.slower + self.estimated + self.faults
    }

    /// All that the software refuses.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.iter().map(|(_, count)| count).sum()
    }

    /// Adds what was decided elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        for (code, count) in &other.refused {
            self.refuse(*code, *count);
        }
        self.too_large += other.too_large;
        self.slower += other.slower;
        self.estimated += other.estimated;
        self.faults += other.faults;
    }

    // A handful of codes: searched one by one, in the order in which they were met.
    pub(crate) fn refuse(&mut self, code: Code, count: u64) {
        match self.refused.iter_mut().find(|(known, _)| *known == code) {
            Some((_, known)) => *known += count,
            None => self.refused.push((code, count)),
        }
    }
}
