//! Evaluation during training, whose batch may be larger than training's.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Default batch size of an evaluation (`transformers/training_args.py:per_device_eval_batch_size`).
const TRAINERS_OWN: u64 = 8;
/// What is not estimated: evaluation saves nothing for a backward pass, but its logits grow with its batch.
const LARGER: &str = "evaluation in larger batches than training's: its logits may be the peak";
/// The same of any batch where the model has an encoder, whose source and cache generating targets holds.
const OF_PAIR: &str =
    "evaluations of an encoder-decoder between steps, which generate targets or hold their logits";

/// The batch of an evaluation between steps. For trainers that compute more than the loss (ms-swift the accuracy), or
/// use their own kernel, there is no formula here if that batch is larger than training's. TRL's supervised fine-tuning
/// computes entropy and accuracy from the logits after the loss: a copy of all but the last token's in their own type,
/// less than the loss needed in fp32 (`trl/trainer/sft_trainer.py:compute_loss`, `entropy_from_logits`).
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let switch = leaves.first(&["eval_strategy", "evaluation_strategy"]);
    let is_off = |leaf: &Leaf| {
        matches!(leaf.value.as_str(), "no" | "NO" | "IntervalStrategy.NO") || leaf.flag() == Some(false)
    };
    let stated = leaves.first(&["per_device_eval_batch_size", "eval_batch_size"]);
    let evaluates = match (dialect, switch) {
        (Dialect::Axolotl, _) => is_asked_of_axolotl(leaves, switch.is_some_and(|leaf| !is_off(leaf))),
        // Before the first step, whatever the strategy is (`trainer.py:eval_on_start`).
        (Dialect::Transformers | Dialect::Trl | Dialect::LlamaFactory, _)
            if leaves.flag("eval_on_start") == Some(true) =>
        {
            true
        }
        (_, Some(leaf)) => !is_off(leaf),
        // Before the first epoch and after each (`step1_supervised_finetuning/main.py`).
        (Dialect::DeepSpeedChat, _) => stated.is_some(),
        (Dialect::Swift, None) => is_usual_of_swift(leaves),
        (_, None) => leaves.flag("do_eval") == Some(true),
    };
    let trained = leaves.reading.value(Field::MicroBatchSize).and_then(|value| value.parse::<u64>().ok());
    let own = match dialect {
        Dialect::Transformers | Dialect::Trl | Dialect::LlamaFactory => Some(TRAINERS_OWN),
        // The same size as training's (`axolotl/core/builders/base.py`).
        Dialect::Axolotl => trained,
        _ => None,
    };
    if !evaluates {
        return;
    }
    let name = ["predict_with_generate", "eval_strategy", "evaluation_strategy", "do_eval"];
    let by = leaves.first(&name);
    let of_pair = NotModelled::new(by.map_or("evaluation", |leaf| &leaf.path), "", Effect::Memory, OF_PAIR)
        .only_at(Field::Seq2seq, "true")
        .at_some(by.and_then(|leaf| leaf.span));
    let Some(batch) = stated.and_then(Leaf::whole).or(own) else {
        leaves.reading.not_modelled.push(of_pair);
        return;
    };
    let reading = &leaves.reading;
    let narrow = [Field::Bf16, Field::Fp16].iter().any(|field| reading.value(*field).is_some());
    let plain_trl = dialect == Dialect::Trl && narrow && reading.value(Field::LigerKernel) != Some("true");
    let only_loss = matches!(
        dialect,
        Dialect::Transformers | Dialect::LlamaFactory | Dialect::Axolotl | Dialect::DeepSpeedChat
    ) || plain_trl;
    if only_loss && !asks_for_more(leaves) {
        match stated {
            Some(leaf) => leaves.say(Field::EvaluationBatchSize, &batch.to_string(), leaf),
            None => {
                let whose = format!("default of {}", dialect.name());
                leaves.state(Field::EvaluationBatchSize, &batch.to_string(), Origin::Default, &whose);
            }
        }
    } else if batch > trained.unwrap_or(TRAINERS_OWN) {
        let leaf = stated.or(switch);
        let name = leaf.map_or("do_eval", |leaf| &leaf.path);
        let item = NotModelled::new(name, &batch.to_string(), Effect::Memory, LARGER)
            .at_some(leaf.and_then(|leaf| leaf.span));
        leaves.reading.not_modelled.push(item);
    } else {
        leaves.reading.not_modelled.push(of_pair);
    }
}

/// Whether an evaluation computes more than the loss.
fn asks_for_more(leaves: &Leaves<'_>) -> bool {
    ["predict_with_generate", "compute_accuracy", "do_causal_lm_eval", "do_bench_eval"]
        .iter()
        .any(|path| leaves.flag(path) == Some(true))
        || leaves.whole("eval_table_size").is_some_and(|size| size > 0)
}

/// Whether a part of the data is held out.
fn is_held_back(leaves: &Leaves<'_>, size: &str, other: &str) -> bool {
    let some = |leaf: &Leaf| leaf.value.parse::<f64>().is_ok_and(|size| size > 0.0);
    leaves.get(size).is_some_and(some) || leaves.text(other).is_some_and(|data| !data.is_empty())
}

/// axolotl evaluates if it has data for it and an evaluation interval
/// (`axolotl/core/builders/base.py:_configure_save_and_eval_strategy`).
fn is_asked_of_axolotl(leaves: &Leaves<'_>, switched: bool) -> bool {
    let evaluates = switched || leaves.has("eval_steps") || leaves.has("evals_per_epoch");
    let listed = leaves.all().iter().any(|leaf| leaf.path.starts_with("test_datasets"));
    evaluates && (listed || is_held_back(leaves, "val_set_size", "test_datasets"))
}

/// ms-swift evaluates as often as it saves if it has data for it (`swift/arguments/sft_args.py:_init_eval_strategy`);
/// its default held-out fraction depends on its version, so a stated interval counts as well.
fn is_usual_of_swift(leaves: &Leaves<'_>) -> bool {
    let unsaid = !leaves.has("split_dataset_ratio") && leaves.has("eval_steps");
    leaves.text("save_strategy") != Some("no")
        && (unsaid || is_held_back(leaves, "split_dataset_ratio", "val_dataset"))
}
