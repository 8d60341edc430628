//! Models held next to the policy with a different shape, by name.

use super::table::Table;
use crate::{Asked, Effect, Question};
use shardscope_catalog::tuned_from;
use shardscope_plan::{Beside, Field, Residence, RewardModel, RolloutEngine, Served, Software, Word};
use shardscope_source::{Code, Diagnostic};

/// The settings that name one, a description, and the setting for its location.
const NAMED: [(Field, &str, Field); 2] = [
    (Field::RlCriticModel, "a critic", Field::RlCritic),
    (Field::RlRewardModel, "a reward model", Field::RlReward),
];

fn residence(table: &Table, place: Field) -> Option<Residence> {
    Residence::named(table.word(place))
}

/// Whether the model is on the policy's accelerators.
fn is_here(table: &Table, place: Field) -> bool {
    matches!(residence(table, place), Some(Residence::Device | Residence::Host | Residence::Engine))
}

/// The names of models on the policy's accelerators, with their settings.
pub(super) fn names(table: &Table) -> Vec<(Field, String)> {
    let here = NAMED.into_iter().filter(|(field, _, place)| table.has(*field) && is_here(table, *place));
    here.map(|(field, ..)| (field, table.word(field).to_owned())).collect()
}

/// Stops the verdict at a model that is sharded as the policy is and has another shape. An unknown one is asked for:
/// the model that its name says it was tuned from is proposed, as for the policy.
pub(super) fn lacking(table: &mut Table, software: Software) {
    for (field, what, place) in NAMED {
        let name = table.word(field).to_owned();
        if name.is_empty() || !is_here(table, place) {
            continue;
        }
        // An engine shards it in its own way.
        if software.semantics().cuts_models && residence(table, place) != Some(Residence::Engine) {
            let message = format!("{what} whose shape differs from the policy's, sharded the same way");
            table.lack(field, &name, Effect::Memory, &message);
        } else if table.beside(field).is_none() {
            let base = tuned_from(&name);
            let mut prompt = format!("Which Hub model has the same shape as {name}, {what}?");
            if let Some(base) = base {
                prompt.push_str(&format!(
                    " Answer {base} if it was fine-tuned from that model without new tokens or layers"
                ));
                let message =
                    format!("{what}, {name}, is not in the catalog, and its shape is not stated here");
                table.say(Diagnostic::error(Code::UnknownModel, message), "", table.span(field));
            } else {
                // Nothing can be proposed, and the rest is known without it.
                table.lack(field, &name, Effect::Memory, &format!("{what} of unknown shape"));
            }
            table.ask(Question {
                asks: Asked::Setting(field),
                prompt,
                choices: Vec::new(),
                proposal: base.map(str::to_owned),
            });
        }
    }
}

/// The models given by the settings.
pub(super) fn beside(table: &Table) -> Beside {
    let reward = table.beside(Field::RlRewardModel).cloned().map(|model| {
        Box::new(RewardModel {
            model,
            residence: residence(table, Field::RlReward).unwrap_or_default(),
            batch: table.count(Field::RlRewardMicroBatch),
            padded: table.on(Field::RlRewardPadding),
            served: (residence(table, Field::RlReward) == Some(Residence::Engine)).then(|| served(table)),
        })
    });
    Beside {
        critic: table.beside(Field::RlCriticModel).cloned().map(Box::new),
        critic_padded: table.on(Field::RlCriticPadding),
        reward,
    }
}

/// The engine of the reward model; what is not stated is verl's (`config/reward/reward.yaml`).
fn served(table: &Table) -> Served {
    Served {
        engine: RolloutEngine::from_word(table.word(Field::RlRewardEngine)).unwrap_or(RolloutEngine::Vllm),
        fraction: table.real(Field::RlRewardMemoryFraction).unwrap_or(0.5).clamp(0.0, 1.0),
        tensor: table.degree(Field::RlRewardTensorParallelSize),
    }
}
