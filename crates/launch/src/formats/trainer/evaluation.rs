//! Evaluation on the way, whose batch may be larger than training's.

use super::dialect::Dialect;
use crate::formats::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};
use shardscope_plan::Field;

/// Sequences of an evaluation batch where the text does not say (`transformers/training_args.py:per_device_eval_batch_size`).
const TRAINERS_OWN: u64 = 8;
/// What is not counted: evaluation keeps nothing for a backward pass, but its logits grow with its batch.
const LARGER: &str = "evaluation in larger batches than training's: its logits may be the peak";

/// An evaluation batch no larger than training's cannot hold more than training: it keeps nothing for a backward pass. A
/// larger one has no formula here.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let switch = leaves.first(&["eval_strategy", "evaluation_strategy"]);
    let is_off = |leaf: &Leaf| {
        matches!(leaf.value.as_str(), "no" | "NO" | "IntervalStrategy.NO") || leaf.flag() == Some(false)
    };
    let stated = leaves.first(&["per_device_eval_batch_size", "eval_batch_size"]);
    let evaluates = match switch {
        Some(leaf) => !is_off(leaf),
        None => leaves.flag("do_eval") == Some(true),
    };
    let own = match dialect {
        Dialect::Transformers | Dialect::Trl | Dialect::LlamaFactory => Some(TRAINERS_OWN),
        _ => None,
    };
    let batch = stated.and_then(Leaf::whole).or(own);
    let trained = leaves.reading.value(Field::MicroBatchSize).and_then(|value| value.parse::<u64>().ok());
    let (Some(batch), Some(leaf)) = (batch.filter(|_| evaluates), stated.or(switch)) else { return };
    if batch > trained.unwrap_or(TRAINERS_OWN) {
        let item =
            NotModelled::new(&leaf.path, &batch.to_string(), Effect::Memory, LARGER).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}
