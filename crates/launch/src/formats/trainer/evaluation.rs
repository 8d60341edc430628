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
    let evaluates = match (dialect, switch) {
        (Dialect::Axolotl, _) => is_asked_of_axolotl(leaves, switch.is_some_and(|leaf| !is_off(leaf))),
        (_, Some(leaf)) => !is_off(leaf),
        (Dialect::Swift, None) => is_usual_of_swift(leaves),
        (_, None) => leaves.flag("do_eval") == Some(true),
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

/// Whether a part of the data is held back.
fn is_held_back(leaves: &Leaves<'_>, size: &str, other: &str) -> bool {
    let some = |leaf: &Leaf| leaf.value.parse::<f64>().is_ok_and(|size| size > 0.0);
    leaves.get(size).is_some_and(some) || leaves.text(other).is_some_and(|data| !data.is_empty())
}

/// axolotl evaluates where it has data for it and is told when
/// (`axolotl/core/builders/base.py:_configure_save_and_eval_strategy`).
fn is_asked_of_axolotl(leaves: &Leaves<'_>, switched: bool) -> bool {
    let told = switched || leaves.has("eval_steps") || leaves.has("evals_per_epoch");
    let listed = leaves.all().iter().any(|leaf| leaf.path.starts_with("test_datasets"));
    told && (listed || is_held_back(leaves, "val_set_size", "test_datasets"))
}

/// ms-swift evaluates as often as it saves where it has data for it (`swift/arguments/sft_args.py:_init_eval_strategy`); how
/// much it holds back by itself depends on its version, so that a stated interval counts as well.
fn is_usual_of_swift(leaves: &Leaves<'_>) -> bool {
    let unsaid = !leaves.has("split_dataset_ratio") && leaves.has("eval_steps");
    leaves.text("save_strategy") != Some("no")
        && (unsaid || is_held_back(leaves, "split_dataset_ratio", "val_dataset"))
}
