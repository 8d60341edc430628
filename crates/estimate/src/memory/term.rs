//! A number of bytes with its formula; the explanation is only built on request.

use shardscope_explain::{Breakdown, Explanation, Formula};
use shardscope_operators::Symbols;
use shardscope_units::Bytes;

/// A number of bytes with its formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Term {
    /// Short name.
    pub(super) name: &'static str,
    /// The number of bytes.
    pub(super) bytes: Bytes,
    /// The formula behind it.
    pub(super) formula: &'static Formula,
    /// Symbols of the formula that are not among the plan's sizes.
    pub(super) given: [(&'static str, f64); 3],
    /// Whether it also exists between steps.
    pub(super) lasting: bool,
}

impl Term {
    /// A term that uses only the plan's symbols.
    pub(super) const fn new(name: &'static str, bytes: Bytes, formula: &'static Formula) -> Self {
        Self { name, bytes, formula, given: [("", 0.0); 3], lasting: true }
    }

    /// The same term with its own symbols, three at most.
    pub(super) fn given(mut self, given: &[(&'static str, f64)]) -> Self {
        for (own, symbol) in self.given.iter_mut().zip(given) {
            *own = *symbol;
        }
        self
    }

    /// The same term, freed when the step ends.
    pub(super) const fn passing(self) -> Self {
        Self { lasting: false, ..self }
    }

    /// Converts it to an explained leaf.
    pub(super) fn leaf(&self, x: &Symbols<'_>) -> Breakdown<Bytes> {
        let mut why = x.explain(self.formula);
        let names = self.formula.names();
        for (name, value) in self.given {
            // Several formulas at one call site are given the same symbols, and not every formula needs all of them.
            if names.contains(&name) {
                if let Some(known) = why.symbols.iter().position(|symbol| symbol.name == name) {
                    why.symbols.remove(known);
                }
                why.symbols.push(shardscope_explain::Symbol { name, value, of_plan: false });
            }
        }
        Breakdown::leaf(self.name, self.bytes)
            .because(Explanation { formula: self.formula, symbols: why.symbols })
    }
}
