//! All groups of a kind as a few numbers: strides instead of lists.

use super::grid::Axis;
use super::groups::{Cut, Pattern};
use super::{GroupKind, Groups};

/// An axis of a rule: how many places it has, and how far apart they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many places there are along this axis.
    pub count: u64,
    /// Ranks from one place to the next.
    pub stride: u64,
}

/// Where the groups of a kind begin and where their members are relative to that: each number is written with one
/// digit per axis, the first axis fastest, and each digit times its stride is added to the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRule {
    /// First ranks of the groups, in ascending order.
    pub groups: Vec<Steps>,
    /// Members from the first rank on, in Megatron's order.
    pub members: Vec<Steps>,
}

impl GroupRule {
    /// Member `place` of group number `group`.
    #[must_use]
    pub fn rank(&self, group: u64, place: u64) -> u64 {
        offset(&self.groups, group) + offset(&self.members, place)
    }
}

fn offset(axes: &[Steps], mut index: u64) -> u64 {
    let mut offset = 0;
    for axis in axes {
        offset += index % axis.count * axis.stride;
        index /= axis.count;
    }
    offset
}

impl Groups {
    /// The rule of the groups of `kind`; `None` if a cut goes through the middle of an axis, so that only a list can
    /// express it.
    #[must_use]
    pub fn rule(&self, kind: GroupKind) -> Option<GroupRule> {
        let Pattern { bases, members, cut } = self.pattern(kind);
        let (bases, members) = (moving(&bases.0), moving(&members.0));
        let (mut groups, members) = match cut {
            Cut::Whole | Cut::Partial => (bases, members),
            Cut::Slices { size, unit } => {
                let (inner, rest) = divided(&members, unit)?;
                let (slice, outer) = divided(&rest, size)?;
                ([inner, outer, bases].concat(), slice)
            }
            Cut::Joined(joined) => {
                // Underlying groups are joined in the order of their bases, the fastest axes first.
                let (low, high) = divided(&bases, joined)?;
                (high, [members, low].concat())
            }
        };
        // Each stride is a multiple of the span of the smaller ones, so that sorted axes give sorted first ranks.
        groups.sort_by_key(|axis| axis.stride);
        Some(GroupRule { groups, members })
    }
}

fn moving(axes: &[Axis]) -> Vec<Steps> {
    let moving = axes.iter().filter(|axis| axis.size > 1);
    moving.map(|axis| Steps { count: axis.size, stride: axis.stride }).collect()
}

/// The axes of the first `points` points, and those that count their repetitions.
fn divided(axes: &[Steps], points: u64) -> Option<(Vec<Steps>, Vec<Steps>)> {
    let (mut low, mut high, mut left) = (Vec::new(), Vec::new(), points.max(1));
    for axis in axes {
        let inside = left.min(axis.count);
        // Neither divides the other: the cut goes through the middle of the axis.
        if !axis.count.is_multiple_of(inside) || !left.is_multiple_of(inside) {
            return None;
        }
        left /= inside;
        if inside > 1 {
            low.push(Steps { count: inside, stride: axis.stride });
        }
        if inside < axis.count {
            high.push(Steps { count: axis.count / inside, stride: axis.stride * inside });
        }
    }
    (left == 1).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups whose members end in the middle of an axis are no lattice of groups and members.
    #[test]
    fn a_cut_through_the_middle_of_an_axis_has_no_rule() {
        let of = |counts: &[u64], points| {
            let axes: Vec<Steps> = counts.iter().map(|count| Steps { count: *count, stride: 1 }).collect();
            let counts = |steps: Vec<Steps>| steps.iter().map(|step| step.count).collect::<Vec<_>>();
            divided(&axes, points).map(|(low, high)| (counts(low), counts(high)))
        };
        assert_eq!(of(&[6], 2), Some((vec![2], vec![3])));
        assert_eq!(of(&[2, 6], 4), Some((vec![2, 2], vec![3])));
        // The axis does not divide by the points, and the points not by the axis.
        assert_eq!(of(&[6], 4), None);
        assert_eq!(of(&[2, 3], 3), None);
        // More points than the axes have.
        assert_eq!(of(&[2, 3], 12), None);
    }
}
