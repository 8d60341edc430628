//! Evaluation between steps, if its batch is larger than training's and its memory is not known.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, RlFramework, Software, word};

/// What is not counted: evaluation keeps nothing for backward, but what a layer holds grows with its batch.
const LARGER: &str = "evaluation in larger batches than training's, with a loss other than transformers' or unfused attention: it may be the peak";

/// The same for log-probabilities of rollouts, which verl computes in separate micro-batches.
const SCORED: &str =
    "log-probability micro-batches larger than the training ones, whose logits may be the peak";

/// Whether it is known what the policy holds while it computes log-probabilities: modules of dense, gated layers with
/// packed or padded samples, whose weights PyTorch's FSDP gathers one layer at a time, under verl and frameworks that
/// share its functions.
fn scores(table: &Table) -> bool {
    table.is_any(&[RlFramework::Verl, RlFramework::VerlShared, RlFramework::EasyR1])
        && table.is_any(&[word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2])
        && table.number(Field::ZeroStage) == 3
        && (table.on(Field::Packing) || table.on(Field::PaddingMask))
        && table.on(Field::Swiglu)
        && table.is_unset_or(&[
            word::LossKind::Torch,
            word::LossKind::PolicyRows,
            word::LossKind::PolicyKernel,
        ])
        && table.is_unset_or(&[word::BaseQuantization::None])
        && ![Field::NumExperts, Field::LinearMixer].into_iter().any(|field| table.has(field))
        && !table.on(Field::OffloadParam)
}

/// The same where the trainer cuts the model: verl's Megatron engine, with layers and output layer of Megatron core. A tower
/// would hold more than in training, too.
fn scores_cut(table: &Table, software: Software) -> bool {
    table.is_any(&[RlFramework::Verl, RlFramework::VerlShared])
        && software == Software::MegatronCoreTe
        && !table.has(Field::VisionTower)
        && !table.has(Field::LinearMixer)
}

/// Whether eager attention holds less than the logits, whatever else it does. Of each score at most four tensors are alive
/// at once, in fp32 at the widest (`modeling_gemma2.py:eager_attention_forward`: products and what is made of them, capped,
/// masked, their softmax and its copy); of each logit at least one in fp32, by the loss. A score is one of a head and a
/// token for each token, so that heads x tokens are compared with the vocabulary.
fn scores_are_few(table: &Table, own: u64) -> bool {
    const ALIVE: u64 = 4;
    let scores = table.number(Field::NumAttentionHeads).saturating_mul(own).saturating_mul(ALIVE);
    own > 0 && scores <= table.number(Field::VocabSize)
}

/// A cache that holds something else than keys and values of all tokens, or that compression makes smaller.
const CACHED: &str = "an evaluation whose cache is not of keys and values of all tokens";

/// An evaluation batch no larger than training's cannot hold more than training does: it keeps nothing for backward.
/// For a larger one the loss is counted, which holds the logits of the entire batch at once.
pub(super) fn find(table: &mut Table, software: Software) {
    let batch = table.number(Field::EvaluationBatchSize);
    let window = table.number(Field::AttentionWindow);
    let all = !table.has(Field::LinearMixer)
        && !table.on(Field::MultiLatentAttention)
        && (window == 0 || window >= table.number(Field::SeqLength));
    if table.on(Field::EvaluationCache) && !all {
        table.lack(Field::EvaluationCache, "", Effect::Memory, CACHED);
    }
    // Without a micro-batch there is nothing to compare with; it is asked for elsewhere.
    let Some(trained) = table.count(Field::MicroBatchSize) else { return };
    // Nor is it known of a model that is being asked for what its layers are.
    if super::named::is_open(table) {
        return;
    }
    let tokens = table.number(Field::LogProbTokens);
    let own = table.number(Field::SeqLength) / table.degree(Field::ContextParallelSize);
    let packs = own > 0 && tokens > trained.saturating_mul(own);
    if batch <= trained && !packs {
        return;
    }
    let in_tiles = table.is(word::LossKind::FusedTiles);
    let own_loss = table.on(Field::LigerKernel) || table.is_unset_or(&[word::LossKind::Torch]);
    // Without logits the peak is in the layers: known if they have a gated MLP.
    let own_loss = if in_tiles { table.on(Field::Swiglu) && !table.has(Field::NumExperts) } else { own_loss };
    // Preferences are supported with TRL's loss.
    let objective = match table.chosen::<word::TrainingObjective>() {
        None | Some(word::TrainingObjective::Sft) => own_loss,
        Some(word::TrainingObjective::Dpo | word::TrainingObjective::Kto) if in_tiles => own_loss,
        Some(word::TrainingObjective::Dpo) => {
            table.is_any(&[word::PreferenceLogits::Own, word::PreferenceLogits::Whole])
        }
        Some(word::TrainingObjective::Policy) => scores(table),
        _ => false,
    };
    let known = software == Software::HfTransformers
        && objective
        // Eager attention holds scores of batch x heads x length x length, which grow here.
        && (!table.is(word::AttnImplementation::Eager) || !in_tiles && scores_are_few(table, own))
        && (!table.has(Field::VisionTower) || table.is(word::TrainingObjective::Policy));
    if !known && !scores_cut(table, software) {
        let what = if table.is(word::TrainingObjective::Policy) { SCORED } else { LARGER };
        let (field, value) =
            if packs { (Field::LogProbTokens, tokens) } else { (Field::EvaluationBatchSize, batch) };
        table.lack(field, &value.to_string(), Effect::Memory, what);
    }
}
