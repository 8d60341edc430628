//! The models of the catalog on the same machines.

use super::start::{Choice, start};
use shardscope_catalog::model_names;
use shardscope_estimate::parameters;
use shardscope_launch::resolve;
use shardscope_plan::Field;
use shardscope_search::Candidate;

/// A plan for each model of the catalog on `choice`'s machines, trained as it says, the one with the most parameters
/// first. Models for which no plan can be proposed there are left out; `choice.model` is ignored.
#[must_use]
pub fn models_on(choice: &Choice) -> Vec<Candidate> {
    let mut sized: Vec<(u64, Candidate)> = Vec::new();
    for name in model_names() {
        let choice = Choice { model: name.to_owned(), ..choice.clone() };
        let Some(input) = start(&choice) else { continue };
        let Some(plan) = resolve(&[], &input.settings).plan else { continue };
        let field = |(name, value): &(String, String)| Some((Field::named(name)?, value.clone()));
        // The whole proposal is given as changes: an answer opened from here starts without any texts.
        let before = input.settings.iter().filter_map(field).collect();
        let count = parameters(&plan).total.get();
        sized.push((count, Candidate { name: name.to_owned(), plan, before, price: None }));
    }
    sized.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    sized.into_iter().map(|(_, candidate)| candidate).collect()
}
