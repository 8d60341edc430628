//! Evaluation between steps, if its batch is larger than training's and its memory is not known.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, Software};

/// What is not counted: evaluation keeps nothing for backward, but what a layer holds grows with its batch.
const LARGER: &str = "evaluation in larger batches than training's, with a loss other than transformers' or unfused attention: it may be the peak";

/// The same for log-probabilities of rollouts, which verl computes in separate micro-batches.
const SCORED: &str =
    "log-probability micro-batches larger than the training ones, whose logits may be the peak";

/// Whether it is known what the policy holds while it computes log-probabilities: modules of dense, gated layers with
/// packed or padded samples, whose weights PyTorch's FSDP gathers one layer at a time, under verl and frameworks that
/// share its functions.
fn scores(table: &Table) -> bool {
    matches!(table.word(Field::RlFramework), "verl" | "easy_r1")
        && matches!(table.word(Field::DataParallelEngine), "fsdp1" | "fsdp2")
        && table.number(Field::ZeroStage) == 3
        && (table.on(Field::Packing) || table.on(Field::PaddingMask))
        && table.on(Field::Swiglu)
        && matches!(table.word(Field::LossKind), "" | "torch" | "policy_rows")
        && matches!(table.word(Field::BaseQuantization), "" | "none")
        && ![Field::NumExperts, Field::LinearMixer].into_iter().any(|field| table.has(field))
        && !table.on(Field::OffloadParam)
}

/// An evaluation batch no larger than training's cannot hold more than training does: it keeps nothing for backward.
/// For a larger one the loss is counted, which holds the logits of the entire batch at once.
pub(super) fn find(table: &mut Table, software: Software) {
    let batch = table.number(Field::EvaluationBatchSize);
    // Without a micro-batch there is nothing to compare with; it is asked for elsewhere.
    let Some(trained) = table.count(Field::MicroBatchSize) else { return };
    let tokens = table.number(Field::LogProbTokens);
    let own = table.number(Field::SeqLength) / table.degree(Field::ContextParallelSize);
    let packs = own > 0 && tokens > trained.saturating_mul(own);
    if batch <= trained && !packs {
        return;
    }
    let in_tiles = table.says(Field::LossKind, "fused_tiles");
    let own_loss = table.on(Field::LigerKernel) || matches!(table.word(Field::LossKind), "" | "torch");
    // Without logits the peak is in the layers: known if they have a gated MLP.
    let own_loss = if in_tiles { table.on(Field::Swiglu) && !table.has(Field::NumExperts) } else { own_loss };
    // Preferences are supported with TRL's loss.
    let objective = match table.word(Field::TrainingObjective) {
        "" | "sft" => own_loss,
        "dpo" | "kto" if in_tiles => own_loss,
        "dpo" => matches!(table.word(Field::PreferenceLogits), "own" | "whole"),
        "policy" => scores(table),
        _ => false,
    };
    let known = software == Software::HfTransformers
        && objective
        // Eager attention keeps scores of batch x heads x length x length, which grow here.
        && table.word(Field::AttnImplementation) != "eager"
        && (!table.has(Field::VisionTower) || table.says(Field::TrainingObjective, "policy"));
    if !known {
        let what = if table.says(Field::TrainingObjective, "policy") { SCORED } else { LARGER };
        let (field, value) =
            if packs { (Field::LogProbTokens, tokens) } else { (Field::EvaluationBatchSize, batch) };
        table.lack(field, &value.to_string(), Effect::Memory, what);
    }
}
