//! The model to which a command's checkpoint or tokenizer belongs, for a command that does not state a shape.

use crate::{Argument, Asked, Question, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::Field;
use shardscope_source::Code;

/// Options whose value is a folder or a name of weights or of a tokenizer, starting with the closest to the model that
/// is trained. In Megatron-LM `--load` and the tokenizer's options say nothing about the shape, so they prove nothing:
/// their names are only proposed (`megatron/training/arguments.py`, `_add_checkpointing_args`, `_add_tokenizer_args`).
const OPTIONS: [&str; 7] = [
    "mcore-model",
    "load",
    "pretrained-checkpoint",
    "ref-load",
    "tokenizer-model",
    "tokenizer-name-or-path",
    "tokenizer",
];

/// Proposes the model whose name appears in a checkpoint's or tokenizer's path (`--load Qwen3-30B-A3B-Base-mcore`), if
/// the text gives neither a shape nor a known model.
pub(super) fn propose_model(reading: &mut Reading, arguments: &[Argument]) {
    let named = OPTIONS.iter().find_map(|option| {
        let value = value_of(arguments, option)?;
        // A tokenizer's path ends with its file, a checkpoint's often with its step.
        let base = value.rsplit('/').take(MOST_FOLDERS).find_map(catalog::tuned_from)?;
        Some((option, value, base))
    });
    let Some((option, value, base)) = named else { return };
    reading.questions.push(Question {
        asks: Asked::Setting(Field::Model),
        prompt: format!(
            "Which model is trained? --{option} {value} is named like {base}; otherwise name another model of the Hub, or paste \
             the config.json as well"
        ),
        choices: Vec::new(),
        proposal: Some(base.to_owned()),
    });
}

/// Maximum bytes of a text that is a question or a note rather than a script, and maximum words of a model's name in
/// it.
const SHORT: usize = 400;
const MOST_WORDS: usize = 4;

/// Asks for the model, proposing the one that a short text names (`Qwen3-32B LoRA on 8 H100?`), if nothing else in the
/// texts is understood and none of them is a program that trains nothing.
pub(super) fn of_nothing_else<'r>(
    text: &str,
    mut readings: impl Iterator<Item = &'r Reading>,
) -> Vec<Question> {
    let nothing = readings.all(|reading| {
        reading.found.is_empty()
            && reading.questions.is_empty()
            && reading.not_modelled.is_empty()
            && !reading.diagnostics.iter().any(|said| said.code == Code::NoTraining)
    });
    // Every few words are compared with the entire catalog, which is only worthwhile for a text without anything else.
    if nothing { named_in(text).into_iter().collect() } else { Vec::new() }
}

fn named_in(text: &str) -> Option<Question> {
    if text.len() > SHORT {
        return None;
    }
    let signs = |sign: char| !sign.is_alphanumeric();
    let words: Vec<&str> = text
        .split_ascii_whitespace()
        .map(|word| word.trim_matches(signs))
        .filter(|word| !word.is_empty())
        .collect();
    // Longer names first: `Llama 3 70B` is not the same model as `Llama 70B`.
    let longest_first = (1..=MOST_WORDS.min(words.len())).rev();
    let base = longest_first
        .flat_map(|count| words.windows(count))
        .find_map(|named| catalog::tuned_from(&named.join("-")))?;
    Some(Question {
        asks: Asked::Setting(Field::Model),
        prompt: format!(
            "Which model is trained? The text names one like {base}; its name on the Hub, or paste its config.json as well"
        ),
        choices: Vec::new(),
        proposal: Some(base.to_owned()),
    })
}

/// How many folders of a path are examined, from its end: those further up name a user or a disk.
const MOST_FOLDERS: usize = 3;

/// The last value of an option, `--option VALUE` or `--option=VALUE`, with dashes or underscores; none if its value is
/// open.
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

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn a_short_text_is_asked_about_the_model_it_names() {
        for (text, expected) in [
            ("Qwen/Qwen3-32B lora 8xH100 seq 8192", Some("Qwen/Qwen3-32B")),
            ("does Llama 3 70B fit on 8 H100s?", Some("meta-llama/Llama-3-70B")),
            ("Can I train on 8 GPUs?", None),
            ("", None),
        ] {
            let proposed = named_in(text).and_then(|question| question.proposal);
            assert_eq!(proposed.as_deref(), expected, "{text}");
        }
        let long = format!("Qwen3-32B {}", "x ".repeat(400));
        assert!(named_in(&long).is_none());
    }
}
