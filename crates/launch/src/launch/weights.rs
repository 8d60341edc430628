//! The model that a command's checkpoint or tokenizer is of, for a command that does not state a shape.

use crate::{Argument, Question, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::Field;

/// Options whose value is a folder or a name of weights or of a tokenizer, the nearest to the model that is trained first.
/// In Megatron-LM `--load` and the tokenizer's options say nothing of the shape, so that they prove nothing: their names are
/// only proposed (`megatron/training/arguments.py`, `_add_checkpointing_args`, `_add_tokenizer_args`).
const OPTIONS: [&str; 9] = [
    "hf-checkpoint",
    "mcore-model",
    "load",
    "pretrained-checkpoint",
    "ref-load",
    "hf-model-path",
    "tokenizer-model",
    "tokenizer-name-or-path",
    "tokenizer",
];

/// Proposes the model whose name stands in a checkpoint's or tokenizer's path (`--load Qwen3-30B-A3B-Base-mcore`), where the
/// text gives neither a shape nor a model that is known.
pub(super) fn propose_model(reading: &mut Reading, arguments: &[Argument]) {
    let shape = [Field::NumLayers, Field::HiddenSize, Field::Model];
    let stated = reading.found.iter().any(|found| shape.contains(&found.field));
    if stated || reading.questions.iter().any(|question| question.name == Field::Model.name()) {
        return;
    }
    let named = OPTIONS.iter().find_map(|option| {
        let value = value_of(arguments, option)?;
        // A tokenizer's path ends with its file, a checkpoint's often with its step.
        let base = value.rsplit('/').take(MOST_FOLDERS).find_map(catalog::tuned_from)?;
        Some((option, value, base))
    });
    let Some((option, value, base)) = named else { return };
    reading.questions.push(Question {
        name: Field::Model.name().to_owned(),
        prompt: format!(
            "Which model is trained? --{option} {value} is named like {base}; otherwise name another model of the Hub, or paste \
             the config.json as well"
        ),
        choices: Vec::new(),
        proposal: Some(base.to_owned()),
    });
}

/// How many folders of a path are looked at, from its end: deeper ones name a user or a disk.
const MOST_FOLDERS: usize = 3;

/// The last value of an option, `--option VALUE` or `--option=VALUE`, with dashes or underscores; none where it is left open.
fn value_of<'a>(arguments: &'a [Argument], option: &str) -> Option<&'a str> {
    let at = arguments.iter().rposition(|word| {
        let body = word.text.strip_prefix("--").map(|body| body.split('=').next().unwrap_or(body));
        body.is_some_and(|name| name.replace('_', "-") == option)
    })?;
    let word = arguments.get(at)?;
    let value = match word.text.split_once('=') {
        Some((_, value)) => Some((word, value)),
        None => arguments.get(at + 1).map(|next| (next, next.text.as_str())),
    };
    value.filter(|(word, value)| word.hole.is_none() && !value.starts_with("--")).map(|(_, value)| value)
}
