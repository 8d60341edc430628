//! A command that is given a settings file and nothing else (`train_grpo.py --config-name grpo_qwen25_7b`): where the file is
//! not among the texts, it is asked for by name.

use super::command_line::CommandLine;
use super::flag::is_spelt;
use crate::Argument;
use crate::formats::{
    MaxText, Reader, configuration_of_easy_r1, configuration_of_verl, is_known_to_easy_r1, is_known_to_verl,
    is_shipped_by_torchtune, is_torchtune_recipe,
};
use shardscope_bash::{CommandKind, Script, Word, base_name};
use shardscope_source::{Code, Diagnostic, Source, Span};

const ENDS: [&str; 4] = [".yaml", ".yml", ".json", ".toml"];
/// Options that name such a file; Hydra's without its ending.
const FLAGS: [&str; 4] = ["--config-name", "--config", "--config-file", "--cfg"];
/// Parts of the names of other options that do.
const OF_SETTINGS: [&str; 7] = ["conf", "cfg", "yaml", "args", "recipe", "setting", "param"];
/// The option under which it holds the model, whatever else the words say: torchtitan's.
const WHOLE: &str = "--job.config-file";
/// The group of Hydra under which NeMo's launcher takes the file of a training (`training=gpt3/5b`).
const GROUP: &str = "training=";

/// Programs that take their settings from a file, whatever their words change of it.
const DRIVEN: [&str; 5] = ["axolotl", "llamafactory-cli", "lmf", "tune", "axolotl.cli.train"];

/// Whether the command's program is told in a file what to train.
pub(super) fn is_driven(line: &CommandLine) -> bool {
    let program = line.program.as_ref().map_or("", |word| base_name(word.text()));
    DRIVEN.contains(&program) || is_torchtune_recipe(program)
}

/// Whether the process that stands here says nothing of how many accelerators train: NeMo's launcher starts the training that it is
/// told, and a process of MaxText has all accelerators of its host.
pub(super) fn is_launched(words: &[Argument]) -> bool {
    words.iter().any(|word| word.text.starts_with(GROUP) || MaxText.is_word(&word.text))
}

/// The file that the words name, alone or before all options, and that is not at hand, and what to say of it. `bare`: no setting
/// stands in the words.
pub(super) fn missing(
    line: &CommandLine,
    words: &[Argument],
    source: &Source,
    bare: bool,
) -> Option<(String, Diagnostic)> {
    let whole = |word: &Argument| is_spelt(word.text.split('=').next().unwrap_or(""), WHOLE);
    let group = words.iter().find_map(|word| Some((word.text.strip_prefix(GROUP)?, word.span)));
    // transformers' and TRL's parsers take a file that stands before all options, which change it.
    let first = words.first().is_some_and(|word| ENDS.iter().any(|end| word.text.ends_with(end)))
        && words.iter().skip(1).any(|word| word.text.starts_with("--"));
    let of_verl = unknown_to_verl(words);
    if !bare && group.is_none() && !first && of_verl.is_none() && !words.iter().any(whole) {
        return None;
    }
    let group =
        group.filter(|(name, _)| !name.is_empty()).map(|(name, span)| (base_name(name).to_owned(), span));
    let (mut name, span) = group.or(of_verl).or_else(|| named(words))?;
    // What torchtune ships is known by its name, and read where no file of that name is given.
    if is_torchtune_recipe(line.trainer()) && words.iter().any(|word| is_shipped_by_torchtune(&word.text)) {
        return None;
    }
    if !ENDS.iter().any(|end| name.ends_with(end)) {
        name.push_str(".yaml");
    }
    absent(name, span, source)
}

/// The configuration below settings of verl, or of EasyR1, where it is none of its own: what it states is not known.
fn unknown_to_verl(words: &[Argument]) -> Option<(String, Option<Span>)> {
    let has = |start: &str| words.iter().any(|word| word.text.trim_start_matches('+').starts_with(start));
    let of_verl = || configuration_of_verl(words).filter(|name| !is_known_to_verl(name));
    let of_easy_r1 = || configuration_of_easy_r1(words).filter(|name| !is_known_to_easy_r1(name));
    let name = match () {
        () if has("actor_rollout_ref.") => of_verl(),
        () if has("worker.") => of_easy_r1(),
        () => None,
    }?;
    let span = words.iter().find(|word| word.text.contains(name)).and_then(|word| word.span);
    (!name.contains('$')).then(|| (base_name(name).to_owned(), span))
}

/// The experiment of Primus that the environment names (`EXP=examples/megatron/configs/MI355X/llama3.1_8B-BF16-pretrain.yaml`):
/// its launchers hand on words that change it.
pub(super) fn experiment(script: &Script, source: &Source) -> Option<(String, Diagnostic)> {
    const LAUNCHERS: [&str; 4] =
        ["run_pretrain.sh", "run_local_pretrain.sh", "run_slurm_pretrain.sh", "primus-cli"];
    let runs = script.commands.iter().filter(|command| command.kind == CommandKind::Run);
    let started = |word: &&Word| LAUNCHERS.contains(&base_name(word.text()));
    let launcher = runs.flat_map(|command| &command.words).find(started)?;
    let named = script.variables.iter().find(|variable| variable.name == "EXP" && variable.exported)?;
    let file = base_name(named.values.first()?.text());
    if !ENDS.iter().any(|end| file.ends_with(end)) {
        return None;
    }
    absent(file.to_owned(), Some(launcher.origin()), source)
}

/// What to say of a file of settings, if it is not among the texts.
fn absent(name: String, span: Option<Span>, source: &Source) -> Option<(String, Diagnostic)> {
    if source.parts().iter().any(|part| base_name(&part.name) == name) {
        return None;
    }
    let message = format!("this training takes its settings from {name}, which is not here");
    let said = Diagnostic::error(Code::MissingFile, message).hint(format!("paste or drop {name} as well"));
    Some((name, said.at_some(span)))
}

/// What a script without training options starts, and that is to be looked at instead: another script or a settings file that is
/// not among the texts, else a program.
pub(super) fn started(script: &Script, source: &Source) -> Option<Diagnostic> {
    const SCRIPTS: [&str; 4] = [".sh", ".slurm", ".sbatch", ".bash"];
    let words = || {
        let runs = script.commands.iter().filter(|command| command.kind == CommandKind::Run);
        runs.flat_map(|command| &command.words)
    };
    let ends = |word: &Word, all: &[&str]| {
        let text = word.text();
        !text.starts_with('-') && !text.contains([' ', '=']) && all.iter().any(|end| text.ends_with(end))
    };
    let is_here = |name: &str| source.parts().iter().any(|part| base_name(&part.name) == name);
    let absent = |word: &&Word| !is_here(base_name(word.text()));
    let file = words().filter(|word| ends(word, &SCRIPTS)).find(absent);
    let file = file.or_else(|| words().filter(|word| ends(word, &ENDS)).find(absent));
    if let Some(word) = file {
        let name = base_name(word.text());
        let message =
            format!("this text starts {name}, which is not here, and has no training options of its own");
        let hint = format!("paste or drop {name} as well");
        return Some(Diagnostic::error(Code::MissingFile, message).hint(hint).at(word.origin()));
    }
    let program = words().find(|word| ends(word, &[".py"]))?;
    let message = format!("{} is started without any training option known here", program.text());
    let hint = "paste what it reads its settings from, or the script that starts the training";
    Some(Diagnostic::error(Code::NoTraining, message).hint(hint).at(program.origin()))
}

fn named(words: &[Argument]) -> Option<(String, Option<Span>)> {
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        let (flag, inline) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        let next = words.get(at + 1).map(|next| next.text.as_str());
        let told = FLAGS
            .iter()
            .chain([&WHOLE])
            .any(|known| is_spelt(flag, known))
            .then(|| inline.or(next))
            .flatten();
        // What a program is tested on, or asked, is no file of settings (`--test_path data/test.json`).
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map_or("", |word| word.text.as_str());
        let other = before.starts_with("--") && !before.contains('=');
        let other = other && !OF_SETTINGS.iter().any(|part| before.contains(part));
        let file = (!other && ENDS.iter().any(|end| text.ends_with(end))).then_some(text);
        if let Some(name) = told.or(file).filter(|name| !name.is_empty() && !name.starts_with('-')) {
            return Some((base_name(name).to_owned(), word.span));
        }
    }
    None
}
