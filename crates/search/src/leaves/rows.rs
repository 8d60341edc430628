//! Decides one row of leaves: lists of recomputed modules one by one, blocks of fully recomputed layers by bisection.

use super::{FEW, Row};
use shardscope_estimate::Verdict;
use shardscope_plan::Recompute;
use shardscope_units::{Bytes, Seconds};

impl Row<'_, '_> {
    /// Decides the leaf without recomputation and the lists of modules: one by one, the fastest first.
    pub(super) fn decide_lists(&mut self, lists: &[usize]) {
        // Without recomputation a leaf is the fastest and the largest: if it is too slow, or fits, the rest is
        // decided.
        let plain = lists.iter().copied().find(|place| self.recompute(*place) == Some(&Recompute::None));
        if let Some(place) = plain.filter(|place| self.is_open(*place))
            && let Some(leaf) = self.leaf(place)
        {
            let draft = self.workspace.known.draft(&leaf.plan);
            if self.workspace.results.is_beaten(draft.least(), &leaf.variant) {
                self.slower_from(place);
            } else {
                self.weigh(place, &leaf, &draft);
            }
        }
        self.drop_heavy(lists);
        let mut bounded: Vec<(Seconds, usize)> = Vec::new();
        for &place in lists {
            // Lists that recompute more come later and may have been decided along with the lists that they contain.
            if !self.is_open(place) {
                continue;
            }
            let Some(leaf) = self.leaf(place) else { continue };
            let least = self.workspace.known.draft(&leaf.plan).least();
            if self.workspace.results.is_beaten(least, &leaf.variant) {
                self.slower_from(place);
            } else {
                bounded.push((least, place));
            }
        }
        // Lowest bound first: its result beats most of the others before their memory is computed.
        bounded.sort_by(|one, other| one.0.get().total_cmp(&other.0.get()));
        for (least, place) in bounded {
            if !self.is_open(place) {
                continue;
            }
            let Some(leaf) = self.leaf(place) else { continue };
            if self.workspace.results.is_beaten(least, &leaf.variant) {
                self.slower_from(place);
                continue;
            }
            let draft = self.workspace.known.draft(&leaf.plan);
            self.weigh(place, &leaf, &draft);
        }
    }

    /// If a list that no other list contains does not fit, neither does any list that it contains.
    fn drop_heavy(&mut self, lists: &[usize]) {
        for &place in lists.iter().rev().filter(|_| lists.len() > FEW) {
            let Some(own) = self.recompute(place) else { continue };
            let mut others = lists.iter().filter(|other| **other != place && self.is_open(**other));
            let is_most = others
                .all(|other| self.recompute(*other).is_none_or(|more| !self.leaves.is_within(own, more)));
            if is_most
                && self.is_open(place)
                && let Some(leaf) = self.leaf(place)
                && self.workspace.known.fit(&leaf.plan).1 == Verdict::OutOfMemory
            {
                self.too_large_to(&leaf.variant.recompute);
            }
        }
    }

    /// Decides the row in which each leaf recomputes more than the previous one.
    pub(super) fn decide_blocks(&mut self, row: &[usize]) {
        // The range still of interest: from the first not known to be too large to the first known to be slow.
        let mut from = 0;
        while row.get(from).is_some_and(|place| !self.is_open(*place)) {
            from += 1;
        }
        let mut until = row.len();
        while until > from && row.get(until - 1).is_some_and(|place| !self.is_open(*place)) {
            until -= 1;
        }
        let Some(row) = row.get(from..until).filter(|row| !row.is_empty()) else { return };
        // Find the first that is too slow ...
        let slow = first(row.len(), |index| self.is_slow(row, index));
        if let Some(place) = row.get(slow) {
            self.slower_from(*place);
        }
        let Some(row) = row.get(..slow).filter(|row| !row.is_empty()) else { return };
        // ... and before it, the first that is not out of memory and the first that leaves the headroom free.
        let mut weighed: Vec<(usize, Bytes, Verdict)> = Vec::new();
        for sought in [Verdict::Tight, Verdict::Fits] {
            let last = row.len() - 1;
            if !self.holds(row, last, sought, &mut weighed) {
                if sought == Verdict::Tight
                    && let Some(recompute) = row.get(last).and_then(|place| self.recompute(*place)).cloned()
                {
                    self.too_large_to(&recompute);
                }
                break;
            }
            let index = first(last, |index| self.holds(row, index, sought, &mut weighed));
            let before = index.checked_sub(1).and_then(|before| self.recompute(*row.get(before)?)).cloned();
            if let Some(recompute) = before.filter(|_| sought == Verdict::Tight) {
                self.too_large_to(&recompute);
            }
            let found = weighed.iter().find(|(one, ..)| *one == index).copied();
            let (Some((_, peak, verdict)), Some(&place)) = (found, row.get(index)) else { continue };
            if self.is_open(place)
                && let Some(leaf) = self.leaf(place)
            {
                let draft = self.workspace.known.draft(&leaf.plan);
                self.settle(place, &leaf, &draft, peak, verdict);
            }
            if verdict == Verdict::Fits {
                break;
            }
        }
        // Leaves in between leave less than the headroom, or take longer than the first that leaves it free.
        for &place in row {
            if self.close(place) {
                self.workspace.tally.slower += 1;
            }
        }
    }

    /// Whether the leaf at `index` of `row` is no faster than a result. False for a refused leaf.
    fn is_slow(&mut self, row: &[usize], index: usize) -> bool {
        let Some(leaf) = row.get(index).and_then(|place| self.leaf(*place)) else { return false };
        let least = self.workspace.known.draft(&leaf.plan).least();
        self.workspace.results.is_beaten(least, &leaf.variant)
    }

    /// Whether the leaf at `index` of `row` has the verdict `sought` or a better one; the result is cached in
    /// `weighed`.
    fn holds(
        &mut self,
        row: &[usize],
        index: usize,
        sought: Verdict,
        weighed: &mut Vec<(usize, Bytes, Verdict)>,
    ) -> bool {
        if let Some((.., verdict)) = weighed.iter().find(|(one, ..)| *one == index) {
            return *verdict <= sought;
        }
        let Some(leaf) = row.get(index).and_then(|place| self.leaf(*place)) else { return false };
        let (peak, verdict) = self.workspace.known.fit(&leaf.plan);
        weighed.push((index, peak, verdict));
        verdict <= sought
    }
}

/// The first of `count` indices for which `holds`, given that it then holds for all later ones; `count` if there is
/// none.
fn first(count: usize, mut holds: impl FnMut(usize) -> bool) -> usize {
    let (mut from, mut until) = (0, count);
    while from < until {
        let middle = from + (until - from) / 2;
        if holds(middle) {
            until = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}
