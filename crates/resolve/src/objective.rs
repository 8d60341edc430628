//! What the loss is computed from.

use super::table::Table;
use shardscope_plan::{Field, Objective, Reference, Taken, word};

/// Whether a head stands in place of the output layer.
pub(super) fn has_head(table: &Table) -> bool {
    table.is_any(&[
        word::TrainingObjective::Reward,
        word::TrainingObjective::TokenRewards,
        word::TrainingObjective::PackedRewards,
        word::TrainingObjective::Classify,
    ])
}

/// The objective that the settings state.
pub(super) fn objective(table: &Table) -> Objective {
    if table.is(word::TrainingObjective::Policy) {
        return Objective::Policy;
    }
    let taken = match table.chosen::<word::TrainingObjective>() {
        Some(word::TrainingObjective::Reward) => Some(Taken::Indexed),
        Some(word::TrainingObjective::TokenRewards) => Some(Taken::Gathered),
        Some(word::TrainingObjective::PackedRewards) => Some(Taken::Unpacked),
        _ => None,
    };
    if let Some(taken) = taken {
        return Objective::Rewards { taken };
    }
    if table.is(word::TrainingObjective::Classify) {
        // `transformers/configuration_utils.py:PreTrainedConfig`.
        return Objective::Classes { labels: table.count(Field::NumLabels).unwrap_or(2) };
    }
    let of_pairs = table.is(word::TrainingObjective::Dpo);
    if !of_pairs && !table.is(word::TrainingObjective::Kto) {
        return Objective::NextToken;
    }
    // With adapters the reference is the model without them (TRL, `disable_adapter`): no copy is held.
    let adapters = table.is_any(&[word::TrainType::Lora, word::TrainType::QLora]);
    let reference = match table.chosen::<word::ReferenceModel>() {
        Some(word::ReferenceModel::Adapters) => Reference::Adapters,
        // Nothing is held if there is none, either (SimPO).
        Some(word::ReferenceModel::Precomputed | word::ReferenceModel::None) => Reference::Precomputed,
        Some(word::ReferenceModel::Loaded) => Reference::Loaded,
        _ if adapters => Reference::Adapters,
        // TRL loads a second model if none is given.
        _ => Reference::Loaded,
    };
    if of_pairs { Objective::Dpo { reference } } else { Objective::Kto { reference } }
}
