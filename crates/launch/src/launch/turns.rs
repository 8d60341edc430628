//! A loop, or calls of a function, that start the training again with other values.

use super::chosen::Chosen;
use shardscope_bash::{Command, CommandKind, Word};
use shardscope_source::{Code, Diagnostic};

/// Parts of the names of options that make another run, with a plan of its own: its model, layout, batch or precision.
/// What tells the nodes of one run apart (`--node_rank`) is none.
const OTHER_RUN: [&str; 17] = [
    "parallel",
    "batch",
    "seq",
    "length",
    "layers",
    "hidden",
    "heads",
    "model",
    "recipe",
    "lora",
    "zero",
    "gpus",
    "nodes",
    "nproc",
    "precision",
    "fp8",
    "accumulation",
];

/// Parts of the names of options that say where a run leaves its files and what it is called.
const NAMING: [&str; 9] = ["save", "load", "dir", "path", "name", "log", "wandb", "ckpt", "project"];

/// Most names that are listed.
const LISTED: usize = 6;

/// Warns that the text starts this training several times, where the plans differ.
pub(super) fn tell(chosen: &mut Chosen, index: usize, commands: &[Command]) {
    let Some(own) = commands.get(index) else { return };
    let same = |command: &&Command| command.span == own.span && command.kind == CommandKind::Run;
    let turns: Vec<&Command> = commands.iter().filter(same).collect();
    let Some(place) = turns.iter().position(|turn| std::ptr::eq(*turn, own)) else { return };
    let mut names: Vec<&str> = Vec::new();
    for other in turns.iter().filter(|other| !std::ptr::eq(**other, own)) {
        for name in changed(&other.words, &own.words) {
            let lower = name.to_ascii_lowercase();
            let last = lower.rsplit('.').next().unwrap_or(&lower);
            let counts = OTHER_RUN.iter().any(|part| last.contains(part));
            let is_name =
                NAMING.iter().any(|part| last.contains(part)) && !last.ends_with("model_name_or_path");
            if counts && !is_name && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return;
    }
    let count = turns.len();
    let which = match place {
        0 => "the first".to_owned(),
        last if last + 1 == count => "the last".to_owned(),
        other => format!("number {}", other + 1),
    };
    let listed = names.get(..LISTED).unwrap_or(&names).join(", ");
    let message = format!(
        "this training is started {count} times, with other values of {listed}; the estimate is for {which}"
    );
    let hint = "set the values of the run that is meant";
    chosen
        .diagnostics
        .push(Diagnostic::warning(Code::SeveralCommands, message).hint(hint).at_some(chosen.span));
}

/// The options of `one` whose value is another one in `other`, or that are not in it.
fn changed<'w>(one: &'w [Word], other: &[Word]) -> Vec<&'w str> {
    let mut names = Vec::new();
    for (at, word) in one.iter().enumerate() {
        let text = word.text();
        let before = at.checked_sub(1).and_then(|at| one.get(at)).map_or("", Word::text);
        // A value that follows its option counts with it.
        let follows = before.starts_with('-') && !before.contains('=') && !text.starts_with('-');
        let is_there = if follows {
            other.windows(2).any(|pair| pair[0].text() == before && pair[1].text() == text)
        } else {
            other.iter().any(|known| known.text() == text)
        };
        if !is_there {
            names.push(if follows { before } else { text.split_once('=').map_or(text, |(name, _)| name) });
        }
    }
    names
}
