//! What a search for other layouts has found, in a serialisable form.

use serde::{Deserialize, Serialize};
use shardscope_report::text::inert;
use shardscope_search::{Walk, refusal};
use shardscope_units::{gib, seconds};

use super::around::Around;
use super::layout::{DEGREES, Layout};

/// Number of layouts in the list that are passed on.
// More would only be scrolled past; `frontier` has the others that matter.
const LISTED: usize = 12;

/// What the search has found so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Candidates decided so far.
    pub tried: u64,
    /// Candidates known so far; grows as the search goes on, so `tried / all` measures progress and is not a count of
    /// layouts.
    pub all: u64,
    /// Layouts that the software refuses.
    pub refused: u64,
    /// The same, by reason in words.
    pub reasons: Vec<(String, u64)>,
    /// Layouts that run out of memory.
    pub too_large: u64,
    /// Layouts that cannot be faster than what was found, by a lower bound of their step.
    pub slower: u64,
    /// Layouts that were fully estimated, as in the report.
    pub estimated: u64,
    /// Accelerators of this kind that would hold the run, if none of the layouts fits and the number is known.
    pub needs: Option<u64>,
    /// Those that fit, the fastest first; then those that use some of the headroom.
    pub best: Vec<Layout>,
    /// Those of which none is both smaller and faster, the fastest first.
    pub frontier: Vec<Layout>,
    /// Which changes affect the plan searched, and what others ran; known once everything is decided.
    pub around: Box<Around>,
}

impl Found {
    /// What `walk` has found so far.
    #[must_use]
    pub fn from_walk(walk: &Walk) -> Self {
        let (tried, all) = walk.progress();
        Self {
            tried,
            all,
            refused: walk.refused(),
            reasons: walk.tally().refused.iter().map(|(code, count)| (refusal(*code), *count)).collect(),
            too_large: walk.too_large(),
            // The tally of the walk, not of the list: lists are truncated, while tallies count everything decided.
            slower: walk.tally().slower,
            estimated: walk.tally().estimated,
            needs: None,
            best: walk.ranked().map(Layout::from_outcome).collect(),
            frontier: walk.frontier().iter().map(Layout::from_outcome).collect(),
            around: Box::default(),
        }
    }

    /// The same while one more item is being evaluated.
    pub(super) fn with_one_more(self) -> Self {
        // `max`: the walk may already know of more than one outstanding item; `tried` is never above `all`.
        Self { all: self.tried.saturating_add(1).max(self.all), ..self }
    }

    /// What searches over all parts of a space have found together; the list of a single search over the space comes
    /// first, followed by whatever else the parts' lists hold.
    #[must_use]
    pub fn joined(parts: &[Option<Self>]) -> Self {
        // A part that has not reported yet is completely outstanding. Counting it as one outstanding item keeps
        // `goes_on` true until every worker has answered.
        let silent = parts.iter().filter(|part| part.is_none()).count() as u64;
        let parts: Vec<&Self> = parts.iter().flatten().collect();
        let sum = |of: fn(&Self) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
        let mut best: Vec<Layout> = Vec::new();
        let mut ranked: Vec<&Layout> = parts.iter().flat_map(|part| &part.best).collect();
        // Parts are ranked within themselves only, so the joined list is ranked again by the same order.
        ranked.sort_by(|one, other| one.ranked_to(other));
        for layout in ranked {
            // The first layout of each cut represents all of them, as within one search. Tight layouts do not
            // represent roomy ones of the same cut, even if faster: each kind has its own list.
            if !best.iter().any(|known| known.tight == layout.tight && known.is_of_cut(layout)) {
                best.push(layout.clone());
            }
        }
        let mut frontier: Vec<Layout> = Vec::new();
        let mut fastest: Vec<&Layout> = parts.iter().flat_map(|part| &part.frontier).collect();
        // Among layouts of equal time the smaller comes first, so that the sweep below drops the larger one.
        fastest.sort_by(|one, other| one.step.total_cmp(&other.step).then(one.peak.cmp(&other.peak)));
        for layout in fastest {
            // All previous ones are faster, so the smallest of them decides.
            if frontier.last().is_none_or(|smallest| layout.peak < smallest.peak) {
                frontier.push(layout.clone());
            }
        }
        Self {
            tried: sum(|part| part.tried),
            all: sum(|part| part.all) + silent,
            refused: sum(|part| part.refused),
            reasons: reasons(&parts),
            too_large: sum(|part| part.too_large),
            slower: sum(|part| part.slower),
            estimated: sum(|part| part.estimated),
            // Part 0 may have asked because it found nothing itself; a layout found by another part makes its answer
            // irrelevant.
            needs: parts.iter().find_map(|part| part.needs).filter(|_| best.is_empty()),
            // Only one part computes it.
            around: parts
                .iter()
                .map(|part| &part.around)
                .find(|around| around.own.is_some())
                .cloned()
                .unwrap_or_default(),
            best,
            frontier,
        }
    }

    /// The fastest, as many as a list shows.
    #[must_use]
    pub fn listed(&self) -> &[Layout] {
        self.best.get(..LISTED).unwrap_or(&self.best)
    }

    /// The list as a Markdown table, with what each layout changes.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "| {} | recompute | step | peak | changes |\n|{}---|---:|---:|---|\n",
            DEGREES.join(" | "),
            "---:|".repeat(DEGREES.len())
        );
        for layout in self.listed() {
            for size in layout.degrees {
                out += &format!("| {size} ");
            }
            let tight = if layout.tight { " (tight)" } else { "" };
            let changes: Vec<String> =
                layout.changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
            out += &format!(
                "| {} | {} | {}{tight} | {} |\n",
                layout.recompute.name(),
                seconds(layout.step()),
                gib(layout.peak()),
                // Explicit stage layouts contain `|`.
                inert(&changes.join(" "))
            );
        }
        out
    }

    /// Whether there is more to try.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        self.tried < self.all
    }
}

/// How many layouts all parts refuse for each reason, the most frequent first.
fn reasons(parts: &[&Found]) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for (reason, count) in parts.iter().flat_map(|part| &part.reasons) {
        match all.iter_mut().find(|(known, _)| known == reason) {
            Some((_, known)) => *known += count,
            None => all.push((reason.clone(), *count)),
        }
    }
    all.sort_by_key(|other| std::cmp::Reverse(other.1));
    all
}
