//! The reasons against a plan, as the rules collect them.

use crate::contradiction::{Contradiction, Rule};
use crate::field::Field;
use crate::hints::{divisors, listed, nearest_multiple, nearest_of};
use shardscope_source::Code;

/// The reasons found so far.
#[derive(Default)]
pub(super) struct Refusals(pub(super) Vec<Contradiction>);

/// A number that must be divisible by another.
pub(super) struct Division {
    pub(super) code: Code,
    /// What is divided, in words with a placeholder for its number: "{} heads".
    pub(super) what: &'static str,
    pub(super) number: u64,
    /// The noun that is counted, if changing that number is also an answer.
    pub(super) noun: &'static str,
    /// By what, in words: "TP".
    pub(super) by: &'static str,
    pub(super) divisor: u64,
    /// The divisor's setting first.
    pub(super) fields: &'static [Field],
}

impl Refusals {
    pub(super) fn push(&mut self, contradiction: Contradiction) {
        self.0.push(contradiction);
    }

    /// Refuses by `rule`; the reason may be given a nearest value.
    pub(super) fn refuse(&mut self, rule: &Rule, numbers: &[u64]) -> &mut Contradiction {
        let place = self.0.len();
        self.push(Contradiction::from_rule(rule, numbers));
        &mut self.0[place]
    }

    /// Refuses unless `holds`.
    pub(super) fn unless(&mut self, holds: bool, rule: &Rule, numbers: &[u64]) {
        if !holds {
            self.refuse(rule, numbers);
        }
    }

    /// Refuses what does not divide evenly, naming the divisors that would.
    pub(super) fn divides(&mut self, division: &Division) {
        let Division { code, what, number, noun, by, divisor, fields } = *division;
        if divisor > 0 && number.is_multiple_of(divisor) {
            return;
        }
        // The number to be divided is usually fixed by the model, so the divisor can be changed and is named first.
        let fitting = divisors(number);
        let what = what.replace("{}", &number.to_string());
        let message = format!("{what} cannot be split over {by} {divisor}");
        let mut hint = format!("{by} {}", listed(&fitting, divisor));
        if !noun.is_empty() && divisor > 0 {
            hint.push_str(&format!(" would do, or {} {noun}", nearest_multiple(number, divisor)));
        }
        let nearest = nearest_of(&fitting, divisor);
        self.push(Contradiction::new(code, fields, message).hint(hint).nearest(nearest));
    }
}
