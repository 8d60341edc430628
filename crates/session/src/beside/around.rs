//! What is shown next to the layouts that a search has found: which changes affect the plan's step and peak, and what
//! others ran.

use serde::{Deserialize, Serialize};
use shardscope_plan::Plan;
use shardscope_search::{Edited, Outcome, best_edits, effect, moved, published, unmoved};

use super::layout::Layout;

/// The neighbourhood of a plan, independent of what its search finds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// The plan itself; `None` until it is known.
    pub own: Option<Neighbour>,
    /// The best plans by one, two and three changes, that with the greatest gain for each change first.
    pub edits: Vec<BestEdits>,
    /// The plan with one setting moved, setting by setting.
    pub moves: Vec<Neighbour>,
    /// Layouts that were published of its model.
    pub published: Vec<Neighbour>,
}

/// The best plan with this number of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestEdits {
    /// How many.
    pub count: usize,
    /// The changes, and the plan with them.
    pub plan: Neighbour,
    /// What they bring and cost, in words; empty if no part of the step explains it.
    pub effect: String,
}

/// A layout that is shown without a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// What it is: a change (`TP 4 → 8`), or who published it.
    pub about: String,
    /// The layout; it may not fit.
    pub layout: Layout,
    /// Whether it fits.
    pub fits: bool,
}

impl Neighbour {
    fn new(about: String, outcome: &Outcome, fits: bool) -> Self {
        Self { about, layout: Layout::from_outcome(outcome), fits }
    }
}

impl BestEdits {
    fn new(plan: &Plan, edited: Edited) -> Self {
        let (count, words) = (edited.words.len(), edited.words.join(", "));
        let effect = edited.variant.apply(plan).map(|changed| effect(plan, &changed)).unwrap_or_default();
        let Edited { variant, changes, peak, tight, step, .. } = edited;
        let outcome = Outcome { variant, changes, peak, tight, step };
        Self { count, plan: Neighbour::new(words, &outcome, true), effect }
    }
}

impl Around {
    /// The neighbourhood of `plan`.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let moves = moved(plan).into_iter();
        let published = published(plan).into_iter();
        let edits = best_edits(plan).into_iter().map(|edited| BestEdits::new(plan, edited));
        let own = unmoved(plan)
            .map(|(outcome, fits)| Neighbour::new("the plan searched".to_owned(), &outcome, fits));
        Self {
            own,
            edits: edits.collect(),
            moves: moves.map(|one| Neighbour::new(one.words, &one.outcome, one.fits)).collect(),
            published: published
                .map(|one| Neighbour::new(one.about.to_owned(), &one.outcome, one.fits))
                .collect(),
        }
    }
}
