//! Samples whose parts have limits of their own.

use crate::leaves::Leaves;
use shardscope_plan::Field;

/// A sample of a prompt and a response, each with a limit of its own: ChatGLM's programs (`ptuning/main.py`:
/// `max_seq_length = max_source_length + max_target_length + 1`), and ALMA's, whose texts fill blocks of both
/// (`utils/utils.py`: `block_size = data_args.max_source_length + data_args.max_new_tokens`).
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let alma = ["oscar_data_path", "mmt_data_path"].iter().any(|path| leaves.has(path));
    let chatglm = leaves.has("prompt_column") && leaves.has("response_column");
    let (other, more) = match (alma, chatglm) {
        (true, _) => ("max_new_tokens", 0),
        (_, true) => ("max_target_length", 1),
        _ => return,
    };
    let Some((source, target)) = leaves.get("max_source_length").zip(leaves.get(other)) else { return };
    let sum =
        source.whole().zip(target.whole()).and_then(|(one, two)| one.checked_add(two)?.checked_add(more));
    if let Some(sum) = sum {
        leaves.say_noted(
            Field::SeqLength,
            &sum.to_string(),
            source,
            "the limits of prompt and response together",
        );
        for path in ["max_source_length", other] {
            leaves.pass(path);
        }
    }
}

/// The lengths of an encoder and of its decoder (`run_summarization.py`, `run_translation.py`), unless another program has read them:
/// with a model that has no encoder they stop.
pub(super) fn of_both(leaves: &mut Leaves<'_>) {
    let parts = [("max_source_length", Field::SourceLength), ("max_target_length", Field::TargetLength)];
    let read = |path: &str| leaves.all().iter().any(|leaf| leaf.path == path && leaf.used.get());
    // O-LoRA and InstructUIE stop by their tasks (`trainers.txt`).
    if parts.iter().any(|(path, _)| read(path)) || leaves.has("task_config_dir") {
        return;
    }
    for (path, field) in parts {
        leaves.take(&[path], field);
    }
}
