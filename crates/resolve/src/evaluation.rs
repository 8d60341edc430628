//! Evaluation between steps, where its batch is larger than training's and what it holds is not known.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, Software};

/// What is not counted: evaluation keeps nothing for a backward pass, but what a layer holds grows with its batch.
const LARGER: &str = "evaluation in larger batches than training's, with a loss other than transformers' or unfused attention: it may be the peak";

/// An evaluation batch no larger than training's cannot hold more than training does: it keeps nothing for a backward pass. Of a
/// larger one the loss is counted, which holds the logits of the whole batch at once.
pub(super) fn find(table: &mut Table, software: Software) {
    let batch = table.number(Field::EvaluationBatchSize);
    // Without a micro-batch there is nothing to compare with; it is asked for elsewhere.
    let Some(trained) = table.count(Field::MicroBatchSize) else { return };
    if batch <= trained {
        return;
    }
    let in_tiles = table.says(Field::LossKind, "fused_tiles");
    let own_loss = table.on(Field::LigerKernel) || matches!(table.word(Field::LossKind), "" | "torch");
    // Without logits the layers hold most: known of those with a gated MLP.
    let own_loss = if in_tiles { table.on(Field::Swiglu) && !table.has(Field::NumExperts) } else { own_loss };
    // Of preferences those whose loss is TRL's.
    let objective = match table.word(Field::TrainingObjective) {
        "" | "sft" => own_loss,
        "dpo" | "kto" if in_tiles => own_loss,
        "dpo" => matches!(table.word(Field::PreferenceLogits), "own" | "whole"),
        _ => false,
    };
    let known = software == Software::HfTransformers
        && objective
        // Eager attention keeps scores of batch x heads x length x length, which is what grows here.
        && table.word(Field::AttnImplementation) != "eager"
        && !table.has(Field::VisionTower);
    if !known {
        table.lack(Field::EvaluationBatchSize, &batch.to_string(), Effect::Memory, LARGER);
    }
}
