//! The one change to make next: a suggestion, or the fastest layout that a search has found. The head of the answer
//! and the list of suggestions name the same one.

use std::cmp::Ordering;

use shardscope::plan::Field;
use shardscope::report::Finding;
use shardscope::session::Shown;
use shardscope::session::beside::{Found, Layout};
use shardscope::units::{Bytes, Seconds};

use super::ui::Search;
use super::words::sentence;

/// A change with its estimates.
#[derive(Clone, PartialEq)]
pub(crate) struct Best {
    pub change: Vec<(Field, String)>,
    /// The full text about it.
    pub title: String,
    pub step: Option<Seconds>,
    pub peak: Option<Bytes>,
    /// Whether the search found it, so that it is not one of the suggestions.
    pub is_searched: bool,
}

impl Best {
    fn of_finding(finding: &Finding) -> Self {
        let Finding { change, message, expected, .. } = finding;
        Self {
            change: change.clone(),
            title: sentence(message),
            step: expected.step,
            peak: expected.peak_reserved,
            is_searched: false,
        }
    }

    fn of_layout(layout: &Layout) -> Self {
        Self {
            change: layout.fields(),
            title: "The fastest layout that the search found".to_owned(),
            step: Some(layout.step()),
            peak: Some(layout.peak()),
            is_searched: true,
        }
    }

    /// Unit: second; unknown counts as slow.
    fn seconds(&self) -> f64 {
        self.step.map_or(f64::MAX, Seconds::get)
    }

    fn by_step(&self, other: &Self) -> Ordering {
        self.seconds().total_cmp(&other.seconds())
    }
}

/// The fastest change that fits and, if the plan fits, is faster than the plan: a suggestion, or what a search has
/// found.
///
/// While a search goes on, its list changes several times a second: a suggestion stays until the search has ended, so
/// that nobody presses "Apply" for one change and gets another. If layouts of a search are being tried on, the plan
/// shown is one of them.
pub(crate) fn best(shown: &Shown, search: Option<&Search>) -> Option<Best> {
    let searching = search.is_none_or(|search| search.going);
    let found: Option<&Found> =
        // A layout tried on is itself the plan shown, and cannot be proposed for itself.
        search.filter(|search| search.chosen.is_empty()).and_then(|search| search.found.as_deref());
    let capacity = shown.plan.cluster().accelerator.memory;
    let lacking = shown.is_out_of_memory();
    // If the plan does not fit, any that fits is better, however slow.
    let now = if lacking { f64::MAX } else { shown.report.time.step.get() };
    let suggested = shown.report.advice.iter().map(Best::of_finding);
    let searched = found.and_then(|found| found.best.first()).map(Best::of_layout);
    let helps = |best: &Best| {
        // Findings without a change are remarks, which no button can apply.
        let fits = !best.change.is_empty() && best.peak.is_some_and(|peak| peak <= capacity);
        // Fewer bits change training quality, not only speed, so that remains just a suggestion.
        let same_numerics =
            !best.change.iter().any(|(field, value)| *field == Field::Fp8 && !value.is_empty());
        fits && (lacking || (same_numerics && best.seconds() < now))
    };
    let suggested = suggested.filter(helps).min_by(Best::by_step);
    let searched = searched.filter(helps);
    match (suggested, searched) {
        // Only a search that has ended may outrank a suggestion.
        (Some(suggested), Some(searched)) if !searching && searched.seconds() < suggested.seconds() => {
            Some(searched)
        }
        (suggested, searched) => suggested.or(searched),
    }
}
