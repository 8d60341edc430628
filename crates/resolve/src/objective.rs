//! What the loss is computed from.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, Objective, Reference, RlFramework, Software, Taken, word};

const HEADS: &str = "a reward or classification head on a vision-language model, or in this software";

/// Whether a head stands in place of the output layer.
pub(super) fn has_head(table: &Table) -> bool {
    table.is_any(&[
        word::TrainingObjective::Reward,
        word::TrainingObjective::TokenRewards,
        word::TrainingObjective::PackedRewards,
        word::TrainingObjective::Classify,
    ])
}

/// What of a value head beside the output layer is not known: weights that train and get no gradient, as the output
/// layer's and its adapters' do then; the states of all layers, which are handed on together where none is recomputed; and its units under
/// FSDP.
pub(super) fn lacking(table: &mut Table, software: Software) {
    if has_head(table) && (software != Software::HfTransformers || table.has(Field::VisionTower)) {
        let word = table.word(Field::TrainingObjective).to_owned();
        table.lack(Field::TrainingObjective, &word, Effect::Model, HEADS);
    }
    let next_token = table.is_unset_or(&[word::TrainingObjective::Sft]);
    if table.is(word::LossKind::InPlaceLogits) && !(next_token && software == Software::HfTransformers) {
        let message = "log-probabilities in place of the logits, of another loss than the next token's, or in this software";
        table.lack(Field::LossKind, "in_place_logits", Effect::Memory, message);
    }
    // Modules of transformers keep something else, and verl's releases of before the copy wrote over the logits (#2484).
    let own = software.semantics().eager_modules
        || table.is(RlFramework::Verl)
            && software == Software::MegatronCoreTe
            && !table.on(Field::CrossEntropyLossFusion);
    if table.on(Field::PolicyEntropy) && !own {
        let message = "the entropy of the logits next to the loss, whose softmax is saved";
        table.lack(Field::PolicyEntropy, "", Effect::Memory, message);
    }
    // The text models with such routers have no balancing loss, but that of GLM-4.5V has one (`modeling_glm4v_moe.py`).
    let sigmoid = table.listed::<word::ModuleVariant>().contains(&word::ModuleVariant::Fp32SigmoidRouter);
    let balances = table.is_any(&[word::RouterLoss::Layers, word::RouterLoss::Joined]);
    if sigmoid && balances && table.has(Field::VisionTower) && table.number(Field::NumExperts) > 0 {
        let word = table.word(Field::RouterLoss).to_owned();
        let message =
            "the balancing loss over the routers of a vision-language model with sigmoid scores (GLM-4.5V)";
        table.lack(Field::RouterLoss, &word, Effect::Memory, message);
    }
    let known = software == Software::HfTransformers
        && table.is_any(&[word::TrainType::Lora, word::TrainType::QLora])
        && table.on(Field::GradientCheckpointing)
        && table.is_unset_or(&[word::DataParallelEngine::Ddp, word::DataParallelEngine::DeepSpeed])
        && table.is_unset_or(&[word::LossKind::Torch])
        && !table.on(Field::LigerKernel)
        && !table.has(Field::ModulesToSave)
        && !table.word(Field::LoraTargetModules).contains("lm_head")
        && !table.has(Field::VisionTower);
    if table.is(word::TrainingObjective::ValueRewards) && !known {
        let message = "a value head beside the output layer, without adapters or without recomputed layers, under FSDP, with \
                       Liger's kernels or a vision tower";
        table.lack(Field::TrainingObjective, "value_rewards", Effect::Memory, message);
    }
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
        Some(word::TrainingObjective::ValueRewards) => Some(Taken::Valued),
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
