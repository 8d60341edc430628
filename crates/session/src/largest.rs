//! The models of the catalog on the same machines.

use super::start::{Choice, start};
use shardscope_catalog::model_names;
use shardscope_estimate::parameters;
use shardscope_launch::resolve;
use shardscope_plan::Field;
use shardscope_search::Candidate;
use shardscope_sorting::sort_by_key;

/// Every model of the catalog that a plan can be proposed for on `choice`'s machines, trained as it says, the one with the most
/// parameters first. Its own model is not looked at.
#[must_use]
pub fn models_on(choice: &Choice) -> Vec<Candidate> {
    let mut sized: Vec<(u64, Candidate)> = Vec::new();
    for name in model_names() {
        let choice = Choice { model: name.to_owned(), ..choice.clone() };
        let Some(input) = start(&choice) else { continue };
        let Some(plan) = resolve(&[], &input.settings).plan else { continue };
        let field = |(name, value): &(String, String)| Some((Field::named(name)?, value.clone()));
        let before = input.settings.iter().filter_map(field).collect();
        let count = parameters(&plan).total.get();
        sized.push((count, Candidate { name: name.to_owned(), plan, before, price: None }));
    }
    sort_by_key(&mut sized, |(count, _)| std::cmp::Reverse(*count));
    sized.into_iter().map(|(_, candidate)| candidate).collect()
}
