//! A breakdown as displayed: every number with its unit, its share and its reason.

use shardscope_estimate::time::part_words;
use shardscope_explain::{Breakdown, Explanation, Rule};
use shardscope_operators::letter_meaning;
use shardscope_units::{Quantity, Seconds, decimal, grouped, seconds};

/// A labelled number with the parts it is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Label of the part.
    pub label: String,
    /// The number with its unit, including all `times`.
    pub value: String,
    /// Its share of the root, 0 to 1.
    pub share: f64,
    /// How many equal parts it stands for.
    pub times: u64,
    /// Whether it is the maximum of its parts rather than their sum.
    pub greatest: bool,
    /// Formula behind the value; `None` for a sum of parts.
    pub reason: Option<Reason>,
    /// Its parts, each shown once.
    pub parts: Vec<Branch>,
}

/// Formula behind a number, with its symbols and source.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// In symbols.
    pub expression: &'static str,
    /// In words.
    pub meaning: &'static str,
    /// Paper, section and equation, or framework file.
    pub source: &'static str,
    /// The symbols with this plan's values.
    pub symbols: Vec<SymbolValue>,
}

/// A symbol of a formula under this plan.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolValue {
    /// As written in the formula.
    pub name: &'static str,
    /// Its value, without a unit.
    pub value: String,
    /// What it means, with its unit; empty if no text states it.
    pub meaning: &'static str,
}

impl Reason {
    /// `explanation` as displayed.
    #[must_use]
    pub fn from_explanation(explanation: &Explanation) -> Self {
        let formula = explanation.formula;
        Self {
            expression: formula.expression,
            meaning: formula.meaning,
            source: formula.source,
            symbols: explanation
                .symbols
                .iter()
                .map(|symbol| SymbolValue {
                    name: symbol.name,
                    value: plain(symbol.value),
                    meaning: letter_meaning(formula, symbol).unwrap_or_default(),
                })
                .collect(),
        }
    }
}

impl Branch {
    /// The time of a step, without parts that take none.
    #[must_use]
    pub fn of_time(node: &Breakdown<Seconds>) -> Self {
        let mut branch = Self::from_breakdown(node, seconds);
        // Tested by share, not by label: which parts are zero depends on the plan (no bubble without a pipeline).
        branch.parts.retain(|part| part.share > 0.0);
        for part in &mut branch.parts {
            part.label = part_words(&part.label).to_owned();
        }
        branch
    }

    /// `node` with each value written by `show`.
    #[must_use]
    pub fn from_breakdown<Q: Quantity>(node: &Breakdown<Q>, show: fn(Q) -> String) -> Self {
        grow(node, show, node.value().number())
    }
}

fn grow<Q: Quantity>(node: &Breakdown<Q>, show: fn(Q) -> String, whole: f64) -> Branch {
    // A root of zero (nothing to send, say) has no shares; dividing would show NaN.
    let share = if whole > 0.0 { node.value().number() / whole } else { 0.0 };
    Branch {
        label: title(node.label()).to_owned(),
        value: show(node.value()),
        share,
        times: node.multiplicity(),
        // The maximum of a single part is that part; the word would confuse where there is nothing to compare.
        greatest: node.rule() == Rule::Greatest && node.children().len() > 1,
        reason: node.why().map(Reason::from_explanation),
        // `whole` is passed down unchanged: shares are relative to the root, so that bars at different depths are
        // comparable.
        parts: node.children().iter().map(|child| grow(child, show, whole)).collect(),
    }
}

/// The words for labels that are names in the document.
fn title(label: &str) -> &str {
    match label {
        "peak_reserved" => "on the device",
        "peak_allocated" => "allocated by PyTorch",
        other => other,
    }
}

/// A number without a unit: whole numbers in groups of three digits, others with four significant places.
#[must_use]
pub fn plain(value: f64) -> String {
    // Above it, a double no longer distinguishes consecutive integers, and grouped digits would claim to be exact.
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let size = value.abs();
    if value.fract() == 0.0 && size < EXACT {
        // Whole and below 2^53 as tested above, so the cast is exact.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let digits = grouped(size as u64);
        // U+2212, as wide as a plus sign, so that columns of digits stay aligned.
        return if value < 0.0 { format!("−{digits}") } else { digits };
    }
    let places = if size >= 1000.0 {
        1
    } else if size >= 1.0 {
        3
    } else {
        5
    };
    decimal(value, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardscope_units::{Bytes, mib};

    #[test]
    fn shares_are_of_the_whole_and_values_carry_units() {
        let tree = Breakdown::sum(
            "all",
            vec![Breakdown::leaf("a", Bytes::mib(1)).times(3), Breakdown::leaf("b", Bytes::mib(1))],
        );
        let branch = Branch::from_breakdown(&tree, mib);
        assert_eq!(branch.value, "4.0 MiB");
        assert_eq!(
            (branch.parts[0].value.as_str(), branch.parts[0].share, branch.parts[0].times),
            ("3.0 MiB", 0.75, 3)
        );
    }

    #[test]
    fn symbols_read_as_numbers() {
        assert_eq!(plain(12_288.0), "12,288");
        assert_eq!(plain(-2.0), "−2");
        assert_eq!(plain(0.5), "0.50000");
    }
}
