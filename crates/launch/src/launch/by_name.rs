//! Commands that start their trainer's programs by name: torchtune's `tune run [options of torchrun] RECIPE …`, which
//! torchrun or Python then runs (`torchtune/_cli/run.py`), and litgpt's `litgpt finetune_lora …`
//! (`litgpt/__main__.py`). They are replaced by the program's command, so that everything that reads commands finds it.

use super::command_line::takes_value;
use crate::formats::{is_torchtune_recipe, program_of_litgpt};
use shardscope_bash::{CommandKind, Script, Value, Word, base_name};

/// Suffix of torchtune's single-GPU recipe names.
const ALONE: &str = "_single_device";

/// Replaces such commands by what they run.
pub(super) fn unfold(script: &mut Script) {
    for command in script.commands.iter_mut().filter(|command| command.kind == CommandKind::Run) {
        if let Some(words) = torchtune(&command.words).or_else(|| litgpt(&command.words)) {
            command.words = words;
        }
    }
}

fn torchtune(words: &[Word]) -> Option<Vec<Word>> {
    let two = |pair: &[Word]| matches!(pair, [tune, run] if base_name(tune.text()) == "tune" && run.text() == "run");
    let at = words.windows(2).position(two)?;
    let (before, options) = (words.get(..at)?, words.get(at + 2..)?);
    let named = recipe(options)?;
    let word = options.get(named).filter(|word| is_torchtune_recipe(word.text()))?;
    let mut all = before.to_vec();
    all.push(in_place_of(word, "torchrun"));
    all.extend_from_slice(options.get(..named)?);
    if word.text().ends_with(ALONE) {
        all.extend(["--nproc_per_node", "1"].map(|text| in_place_of(word, text)));
    }
    all.push(in_place_of(word, &format!("{}.py", word.text())));
    all.extend_from_slice(options.get(named + 1..)?);
    Some(all)
}

/// The index of the recipe: the first word that is neither an option of torchrun nor a value of one.
fn recipe(words: &[Word]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if !word.text().starts_with('-') {
            return Some(at);
        }
        at += if takes_value(word.text()) { 2 } else { 1 };
    }
    None
}

fn litgpt(words: &[Word]) -> Option<Vec<Word>> {
    let at = words.iter().position(|word| base_name(word.text()) == "litgpt")?;
    let command = words.get(at + 1)?;
    // `litgpt finetune lora` before litgpt 0.5.
    let second = words.get(at + 2).map(|second| format!("{}_{}", command.text(), second.text()));
    let (program, rest) = match second.and_then(|both| program_of_litgpt(&both)) {
        Some(program) => (program, at + 3),
        None => (program_of_litgpt(command.text())?, at + 2),
    };
    let mut all = words.get(..at)?.to_vec();
    all.extend(["python", program].map(|text| in_place_of(command, text)));
    all.extend_from_slice(words.get(rest..)?);
    Some(all)
}

/// A word that is not in the text, with the position of the one that it replaces.
fn in_place_of(word: &Word, text: &str) -> Word {
    Word { value: Value::computed(text, word.span), span: word.span }
}
