//! Models beside the policy whose shape is another, by their names.

use super::resolve::resolve;
use super::table::Table;
use crate::{Effect, Question};
use shardscope_plan::{Beside, Field, Model, Residence, RewardModel, Software};

/// The settings that name one, what it is, and where it is.
const NAMED: [(Field, &str, Field); 2] = [
    (Field::RlCriticModel, "a critic", Field::RlCritic),
    (Field::RlRewardModel, "a reward model", Field::RlReward),
];

/// Its shape as `software` builds it; none where the catalog does not have it, or it has parts beside a decoder.
fn shape(name: &str, software: Software) -> Option<Model> {
    // Batch and machine are the policy's; these only let the plan be made.
    let alone = [
        ("model", name),
        ("software", software.name()),
        ("seq_length", "8"),
        ("micro_batch_size", "1"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
    ];
    let resolution = resolve(&[], &alone.map(|(field, value)| (field.to_owned(), value.to_owned())));
    resolution.plan.filter(|_| resolution.not_modelled.is_empty()).map(|plan| plan.model().clone())
}

/// Whether it shares the policy's accelerators.
fn is_here(table: &Table, place: Field) -> bool {
    matches!(table.word(place), "device" | "host")
}

/// Stops the verdict at a model that is not known, and asks for another name of its shape.
pub(super) fn lacking(table: &mut Table, software: Software) {
    for (field, what, place) in NAMED {
        let name = table.word(field).to_owned();
        if name.is_empty() || !is_here(table, place) {
            continue;
        }
        if software.semantics().cuts_models {
            let message = format!("{what} of another shape than the policy, which is cut as it is");
            table.lack(field, &name, Effect::Memory, &message);
        } else if shape(&name, software).is_none() {
            let message = format!("{what} whose shape is not known");
            table.lack(field, &name, Effect::Memory, &message);
            table.ask(Question {
                name: field.name().to_owned(),
                prompt: format!("Which model has the shape of {name}, {what}? Its name on the Hub"),
                choices: Vec::new(),
                proposal: None,
            });
        }
    }
}

/// The models of the settings.
pub(super) fn beside(table: &Table, software: Software) -> Beside {
    let named = |field: Field, place: Field| {
        let name = table.word(field);
        (is_here(table, place) && !name.is_empty()).then(|| shape(name, software)).flatten()
    };
    let reward = named(Field::RlRewardModel, Field::RlReward).map(|model| {
        Box::new(RewardModel {
            model,
            residence: Residence::named(table.word(Field::RlReward)).unwrap_or_default(),
            batch: table.count(Field::RlRewardMicroBatch),
            padded: table.on(Field::RlRewardPadding),
        })
    });
    Beside {
        critic: named(Field::RlCriticModel, Field::RlCritic).map(Box::new),
        critic_padded: table.on(Field::RlCriticPadding),
        reward,
    }
}
