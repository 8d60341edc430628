//! The parts of a sum that changed most.

use super::figures::fullest_rank;
use super::line::{Amount, Cause};
use crate::Report;
use shardscope_estimate::PEAK_ALLOCATED;
use shardscope_estimate::time::part_words;
use shardscope_explain::{Breakdown, Rule};
use shardscope_units::{Bytes, Quantity, product};

/// Breakdown of the memory of the fullest GPU.
pub(super) fn worst(report: &Report) -> Option<&Breakdown<Bytes>> {
    fullest_rank(report).map(|rank| &rank.breakdown)
}

/// Maximum number of causes listed.
const MOST_CAUSES: usize = 8;

/// The leaves that changed, the greatest change first.
pub(super) fn causes<Q: Quantity>(
    before: Option<&Breakdown<Q>>,
    after: Option<&Breakdown<Q>>,
    amount: fn(f64) -> Amount,
) -> Vec<Cause> {
    let mut found = Leaves::default();
    if let (Some(before), Some(after)) = (before, after) {
        for (root, is_after) in [(before, false), (after, true)] {
            found.after = is_after;
            // Children only: the root is the sum itself and would always be the greatest change.
            for child in root.children() {
                leaves(child, 1, &mut found);
            }
        }
    }
    found.causes(amount)
}

/// Adds the value of every leaf that counts, `times` over, under its path.
fn leaves<'a, Q: Quantity>(node: &'a Breakdown<Q>, times: u64, found: &mut Leaves<'a>) {
    // What torch counts is the sum of the others and needs no name.
    let named = node.label() != PEAK_ALLOCATED;
    if named {
        let label = node.label();
        // Part names at the first level are identifiers of the time's breakdown; deeper labels are words already.
        found.path.push(if found.path.is_empty() { part_words(label) } else { label });
    }
    let inside = product(times, node.multiplicity());
    match node.rule() {
        Rule::Leaf => found.add(node.value().times(times).number()),
        Rule::Sum => {
            for child in node.children() {
                leaves(child, inside, found);
            }
        }
        Rule::Greatest => {
            // In a maximum only the decisive child changes the total; others could change without any effect.
            let mut greatest: Option<&Breakdown<Q>> = None;
            for child in node.children() {
                if greatest.is_none_or(|other| child.value().number() >= other.value().number()) {
                    greatest = Some(child);
                }
            }
            if let Some(child) = greatest {
                leaves(child, inside, found);
            }
        }
    }
    if named {
        found.path.pop();
    }
}

/// Leaves of two breakdowns by their paths, as bare numbers: exact below 2^53.
#[derive(Default)]
struct Leaves<'a> {
    /// Labels from the root to the current leaf.
    path: Vec<&'a str>,
    /// Whether the current breakdown is the later one.
    after: bool,
    /// The sums before and after.
    sums: Vec<(String, [f64; 2])>,
}

impl Leaves<'_> {
    fn add(&mut self, value: f64) {
        let path = self.path.join(" › ");
        // Leaves with the same path are summed: equal layers occur in several places.
        let place = usize::from(self.after);
        if let Some((_, sums)) = self.sums.iter_mut().find(|(other, _)| *other == path) {
            sums[place] += value;
        } else {
            let mut sums = [0.0; 2];
            sums[place] = value;
            self.sums.push((path, sums));
        }
    }

    /// The greatest changes; ties are broken by path.
    fn causes(mut self, amount: fn(f64) -> Amount) -> Vec<Cause> {
        let mut causes = Vec::new();
        // Picked one by one, at most eight of perhaps hundreds, rather than sorting them all.
        while causes.len() < MOST_CAUSES {
            let (mut most, mut at) = (0.0, None);
            for (index, (path, [before, after])) in self.sums.iter().enumerate() {
                let change = (after - before).abs();
                let first = at.is_none_or(|at: usize| *path < self.sums[at].0);
                if change > most || (change == most && change > 0.0 && first) {
                    (most, at) = (change, Some(index));
                }
            }
            let Some(at) = at else { break };
            // Removed, so that the next round finds the next greatest; the order of the rest does not matter.
            let (path, [before, after]) = self.sums.swap_remove(at);
            causes.push(Cause { path, before: amount(before), after: amount(after) });
        }
        causes
    }
}
