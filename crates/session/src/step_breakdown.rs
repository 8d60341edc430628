//! Where a step goes, at a glance.

use shardscope_estimate::time::Time;
use shardscope_units::Quantity;

/// Parts below this share of the step would be thinner than a pixel and are left to the tree of its time.
const LEAST_SHARE: f64 = 0.0005;

/// A part of the step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPart {
    /// Label in the breakdown of the time.
    pub label: String,
    /// Its share of the step, 0 to 1.
    pub share: f64,
    /// The shares of all longer parts together.
    pub from: f64,
}

/// The parts of the step, the longest first.
#[must_use]
pub fn step_parts(time: &Time) -> Vec<StepPart> {
    let whole = time.step.number().max(f64::MIN_POSITIVE);
    let mut parts: Vec<StepPart> = Vec::new();
    for part in time.breakdown.children() {
        let share = part.value().number() / whole;
        if share >= LEAST_SHARE {
            // Sorted while inserted: stable for equal shares, and a step has a dozen parts.
            let shorter = parts.iter().position(|other| other.share < share).unwrap_or(parts.len());
            parts.insert(shorter, StepPart { label: part.label().to_owned(), share, from: 0.0 });
        }
    }
    // Over the shown parts only; what was dropped leaves the bar that much short of its end.
    let mut from = 0.0;
    for part in &mut parts {
        part.from = from;
        from += part.share;
    }
    parts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn the_parts_of_the_example_are_its_step() {
        let state = State::default();
        let time = &state.shown.as_ref().unwrap().report.time;
        let parts = step_parts(time);
        assert_eq!(parts[0].label, "compute");
        assert!(parts.is_sorted_by(|a, b| a.share >= b.share));
        for part in &parts {
            let seconds = time.breakdown.child(&part.label).unwrap().value().get();
            assert!((part.share * time.step.get() - seconds).abs() < 1e-12, "{}", part.label);
        }
        let last = parts.last().unwrap();
        let (all, dropped) = (last.from + last.share, time.breakdown.children().len() - parts.len());
        assert!(all <= 1.0 + 1e-12 && all > 1.0 - LEAST_SHARE * (dropped + 1) as f64, "{all}");
    }
}
