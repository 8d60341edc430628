//! Recorded runs compared with computed figures: all differences are reported at once, by case and part.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols};

use super::formula::evaluate;

/// Maximum number of reported differences; the total is reported with them.
const MOST_LISTED: usize = 30;

/// The comparisons so far.
#[derive(Default)]
pub(crate) struct Recorded {
    compared: usize,
    wrong: Vec<String>,
}

impl Recorded {
    /// Compares the bytes that a run kept for `part`, none if it has no such part, with ours.
    pub(crate) fn check(&mut self, case: &Value, part: &str, ours: u64) {
        let recorded = case["kept"][part].as_u64().unwrap_or(0);
        if ours != recorded {
            self.wrong.push(format!("{}: {part}: {recorded} recorded, {ours} here", case["id"]));
        }
        self.compared += 1;
    }

    /// The number of compared parts.
    ///
    /// # Panics
    /// If one differs.
    #[track_caller]
    pub(crate) fn equal(self) -> usize {
        let lines = self.wrong[..self.wrong.len().min(MOST_LISTED)].join("\n");
        assert!(self.wrong.is_empty(), "{} of {}:\n{lines}", self.wrong.len(), self.compared);
        self.compared
    }
}

/// Checks that the formula of each kept tensor gives its bytes.
#[track_caller]
pub(crate) fn formulas(case: &Value, x: &Symbols<'_>, operators: &[Operator]) {
    for saved in operators.iter().flat_map(|operator| operator.saved(x)) {
        let value = evaluate(saved.formula.expression, &|name| x.value(name));
        assert_eq!(saved.bytes.get() as f64, value, "{}: {}", case["id"], saved.name);
    }
}
