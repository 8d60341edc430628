//! What a search for other layouts has found, in a form that goes from the worker to the page.

use serde::{Deserialize, Serialize};
use shardscope::plan::{Field, Recompute};
use shardscope::search::{Outcome, Walk};
use shardscope::units::{Bytes, Seconds};

/// Layouts of the list that are handed on.
const LISTED: usize = 12;

/// What the search has found so far.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Things looked at, and all that are known so far: only how far the search is.
    pub tried: u64,
    pub all: u64,
    /// Layouts that the software refuses.
    pub refused: u64,
    /// Layouts that run out of memory.
    pub too_large: u64,
    /// Layouts that cannot be faster than what was found, by a lower bound of their step.
    pub slower: u64,
    /// Layouts that were worked out as the report does.
    pub estimated: u64,
    /// Accelerators of this kind that would hold the run, where none of the layouts fits and that is known.
    pub needs: Option<u64>,
    /// Those that fit, the fastest first; behind them those that take some of the headroom.
    pub best: Vec<Layout>,
    /// Those of which none is both smaller and faster, the fastest first.
    pub frontier: Vec<Layout>,
}

/// One layout that fits.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// Settings that differ from the plan that the search began with, by name.
    pub changes: Vec<(String, String)>,
    /// In the order of [`DEGREES`].
    pub degrees: [u64; 6],
    pub recompute: Recomputed,
    /// Bytes reserved at the peak of the fullest GPU.
    peak: u64,
    /// Whether the peak takes some of the headroom.
    pub tight: bool,
    /// Unit: second.
    step: f64,
}

/// What of the layers is recomputed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Recomputed {
    None,
    Selective,
    Full,
}

impl Recomputed {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Selective => "selective",
            Self::Full => "full",
        }
    }
}

/// What the sizes of a layout are called, in their order.
pub(crate) const DEGREES: [&str; 6] = ["TP", "PP", "VPP", "CP", "EP", "MBS"];

impl Found {
    /// What `walk` has found so far.
    pub(crate) fn of(walk: &Walk) -> Self {
        let (tried, all) = walk.progress();
        Self {
            tried,
            all,
            refused: walk.refused(),
            too_large: walk.too_large(),
            slower: walk.tally().slower,
            estimated: walk.tally().estimated,
            needs: None,
            best: walk.ranked().map(Layout::of).collect(),
            frontier: walk.frontier().iter().map(Layout::of).collect(),
        }
    }

    /// The fastest, as many as a list shows.
    pub(crate) fn listed(&self) -> &[Layout] {
        self.best.get(..LISTED).unwrap_or(&self.best)
    }

    /// Whether there is more to try.
    pub(crate) const fn goes_on(&self) -> bool {
        self.tried < self.all
    }
}

impl Layout {
    fn of(outcome: &Outcome) -> Self {
        let of = &outcome.variant;
        let named = |(field, value): &(Field, String)| (field.name().to_owned(), value.clone());
        Self {
            changes: outcome.changes.iter().map(named).collect(),
            degrees: [
                of.tensor,
                of.pipeline,
                of.virtual_pipeline,
                of.context,
                of.expert,
                of.micro_batch_size,
            ],
            recompute: match of.recompute {
                Recompute::None => Recomputed::None,
                Recompute::Selective(_) => Recomputed::Selective,
                Recompute::Uniform { .. } | Recompute::Block { .. } => Recomputed::Full,
            },
            peak: outcome.peak.get(),
            tight: outcome.tight,
            step: outcome.step.get(),
        }
    }

    /// Reserved at the peak of the fullest GPU.
    pub(crate) fn peak(&self) -> Bytes {
        Bytes::new(self.peak)
    }

    pub(crate) fn step(&self) -> Seconds {
        Seconds::new(self.step)
    }

    /// Its sizes in words: those above 1, and always TP, PP and MBS.
    pub(crate) fn words(&self) -> String {
        let told = |(name, size): &(&str, u64)| *size > 1 || matches!(*name, "TP" | "PP" | "MBS");
        let sizes: Vec<String> = DEGREES
            .into_iter()
            .zip(self.degrees)
            .filter(told)
            .map(|(name, size)| format!("{name} {size}"))
            .collect();
        format!("{}, recompute {}", sizes.join(" · "), self.recompute.name())
    }

    /// The changes as the engine names settings.
    pub(crate) fn fields(&self) -> Vec<(Field, String)> {
        let field = |(name, value): &(String, String)| Some((Field::named(name)?, value.clone()));
        self.changes.iter().filter_map(field).collect()
    }
}
