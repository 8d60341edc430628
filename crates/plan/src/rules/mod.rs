//! What Megatron refuses at start (`arguments.py`, `transformer_config.py`, `parallel_state.py`,
//! `schedules.py`), rule by rule, and sizes that nothing could hold.

mod batch;
mod bounds;
mod experts;
mod parallel;
mod shape;
mod training;

use super::contradiction::Rule;
use super::hints::{divisors, listed, nearest_multiple, nearest_of};
use super::{Contradiction, Field, Plan};
use shardscope_source::Code;

/// Every reason against the plan.
pub(super) fn refused(plan: &Plan) -> Vec<Contradiction> {
    let mut refusals = Refusals::default();
    bounds::each(plan, &mut refusals);
    // Sizes beyond the bounds are not worth dividing.
    if refusals.0.is_empty() {
        shape::check(plan, &mut refusals);
        experts::check(plan, &mut refusals);
        parallel::check(plan, &mut refusals);
        batch::check(plan, &mut refusals);
        training::check(plan, &mut refusals);
        bounds::products(plan, &mut refusals);
    }
    refusals.0
}

/// The reasons found so far.
#[derive(Default)]
struct Refusals(Vec<Contradiction>);

/// A number that must divide by another.
struct Division {
    code: Code,
    /// What is divided, in words with a hole for its number: "{} heads".
    what: &'static str,
    number: u64,
    /// What is counted, where another number is an answer too.
    noun: &'static str,
    /// By what, in words: "TP".
    by: &'static str,
    divisor: u64,
    /// The divisor's setting first.
    fields: &'static [Field],
}

impl Refusals {
    fn push(&mut self, contradiction: Contradiction) {
        self.0.push(contradiction);
    }

    /// Refuses by `rule`; the reason may be given a nearest value.
    fn refuse(&mut self, rule: &Rule, numbers: &[u64]) -> &mut Contradiction {
        let place = self.0.len();
        self.push(Contradiction::of(rule, numbers));
        &mut self.0[place]
    }

    /// Refuses unless `holds`.
    fn unless(&mut self, holds: bool, rule: &Rule, numbers: &[u64]) {
        if !holds {
            self.refuse(rule, numbers);
        }
    }

    /// Refuses what does not divide, naming the divisors that would.
    fn divides(&mut self, division: &Division) {
        let Division { code, what, number, noun, by, divisor, fields } = *division;
        if divisor > 0 && number.is_multiple_of(divisor) {
            return;
        }
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
