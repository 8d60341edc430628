//! A layout as listed by a search, in a serialisable form.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use shardscope_plan::{Field, Plan, Recompute, Variant};
use shardscope_search::Outcome;
use shardscope_units::{Bytes, Seconds};

/// One layout that fits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Settings that differ from the plan searched around, by name: `Field`s are not part of the serialised form.
    pub changes: Vec<(String, String)>,
    /// In the order of [`DEGREES`].
    pub degrees: [u64; 6],
    /// Extent of recomputation.
    pub recompute: Recomputed,
    // Distinguishes cuts (`is_of_cut`) without a separate column in the list.
    pub(super) expert_tensor: u64,
    /// Bytes reserved at the peak of the fullest GPU.
    pub(super) peak: u64,
    /// Whether the peak leaves less than the headroom.
    pub tight: bool,
    /// Time of a step, in seconds.
    pub(super) step: f64,
}

/// Extent of recomputation in the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recomputed {
    /// Nothing.
    None,
    /// Parts of each layer.
    Selective,
    /// Whole layers.
    Full,
}

impl Recomputed {
    /// Word in the list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Selective => "selective",
            Self::Full => "full",
        }
    }
}

fn sizes(of: &Variant) -> ([u64; 6], Recomputed) {
    let recompute = match of.recompute {
        Recompute::None => Recomputed::None,
        Recompute::Selective(_) => Recomputed::Selective,
        // All three recompute whole layers; they differ in which, and the changes say that.
        Recompute::Uniform { .. } | Recompute::Block { .. } | Recompute::Every { .. } => Recomputed::Full,
    };
    let degrees = [of.tensor, of.pipeline, of.virtual_pipeline, of.context, of.expert, of.micro_batch_size];
    (degrees, recompute)
}

/// Names of [`Layout::degrees`], in their order.
pub const DEGREES: [&str; 6] = ["TP", "PP", "VPP", "CP", "EP", "MBS"];

impl Layout {
    /// What the list shows for the plan searched: its degrees and the extent of recomputation.
    #[must_use]
    pub fn sizes_of(plan: &Plan) -> ([u64; 6], Recomputed) {
        sizes(&Variant::from_plan(plan))
    }

    /// A layout from a search outcome.
    #[must_use]
    pub fn from_outcome(outcome: &Outcome) -> Self {
        let of = &outcome.variant;
        let (degrees, recompute) = sizes(of);
        let named = |(field, value): &(Field, String)| (field.name().to_owned(), value.clone());
        Self {
            changes: outcome.changes.iter().map(named).collect(),
            degrees,
            expert_tensor: of.expert_tensor,
            recompute,
            peak: outcome.peak.get(),
            tight: outcome.tight,
            step: outcome.step.get(),
        }
    }

    /// The ranking order, as for [`Outcome`]s.
    // `tight` compares first: `false < true` puts those with headroom before all others, however fast.
    pub(super) fn ranked_to(&self, other: &Self) -> Ordering {
        let order = self.tight.cmp(&other.tight);
        order.then(self.step.total_cmp(&other.step)).then(self.peak.cmp(&other.peak))
    }

    /// As [`Outcome::is_of_cut`]: equal degrees except for virtual stages, and equal micro-batches.
    pub(super) fn is_of_cut(&self, other: &Self) -> bool {
        let cut = |of: &Self| {
            // Virtual stages are left out: they vary the schedule of one cut, and the list only shows the fastest of
            // them.
            let [tensor, pipeline, _, context, expert, micro_batch] = of.degrees;
            [tensor, pipeline, context, expert, of.expert_tensor, micro_batch]
        };
        cut(self) == cut(other)
    }

    /// Reserved at the peak of the fullest GPU.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        Bytes::new(self.peak)
    }

    /// The time of its step.
    #[must_use]
    pub fn step(&self) -> Seconds {
        Seconds::new(self.step)
    }

    /// Its sizes in words: those above 1, and always TP, PP and MBS.
    #[must_use]
    pub fn words(&self) -> String {
        // These three identify a layout, even at 1.
        let shown = |(name, size): &(&str, u64)| *size > 1 || matches!(*name, "TP" | "PP" | "MBS");
        let sizes: Vec<String> = DEGREES
            .into_iter()
            .zip(self.degrees)
            .filter(shown)
            .map(|(name, size)| format!("{name} {size}"))
            .collect();
        format!("{}, recompute {}", sizes.join(" · "), self.recompute.name())
    }

    /// The changes by the engine's setting names.
    #[must_use]
    pub fn fields(&self) -> Vec<(Field, String)> {
        // A change with a name unknown to this version is dropped rather than applied to a wrong field.
        let field = |(name, value): &(String, String)| Some((Field::named(name)?, value.clone()));
        self.changes.iter().filter_map(field).collect()
    }
}
