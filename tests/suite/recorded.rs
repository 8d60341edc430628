//! Recorded runs beside what is worked out here: what differs is told by case and part, all at once.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols};

use super::formula::evaluate;

/// Differences told at most; the number of all is told beside them.
const TOLD: usize = 30;

/// What was compared so far.
#[derive(Default)]
pub(crate) struct Recorded {
    compared: usize,
    wrong: Vec<String>,
}

impl Recorded {
    /// Bytes that a run kept of `part`, none where it has no such part, beside ours.
    pub(crate) fn check(&mut self, case: &Value, part: &str, ours: u64) {
        let recorded = case["kept"][part].as_u64().unwrap_or(0);
        if ours != recorded {
            self.wrong.push(format!("{}: {part}: {recorded} recorded, {ours} here", case["id"]));
        }
        self.compared += 1;
    }

    /// How many parts were compared.
    ///
    /// # Panics
    /// Where one differs.
    #[track_caller]
    pub(crate) fn equal(self) -> usize {
        let told = self.wrong[..self.wrong.len().min(TOLD)].join("\n");
        assert!(self.wrong.is_empty(), "{} of {}:\n{told}", self.wrong.len(), self.compared);
        self.compared
    }
}

/// That the formula of each kept tensor comes to its bytes.
#[track_caller]
pub(crate) fn formulas(case: &Value, x: &Symbols<'_>, operators: &[Operator]) {
    for saved in operators.iter().flat_map(|operator| operator.saved(x)) {
        let value = evaluate(saved.formula.expression, &|name| x.value(name));
        assert_eq!(saved.bytes.get() as f64, value, "{}: {}", case["id"], saved.name);
    }
}
