//! Commands whose only argument is a settings file (`train_grpo.py --config-name grpo_qwen25_7b`): if the file is not
//! among the texts, it is asked for by name.

use super::command_line::CommandLine;
use super::flag::is_spelt;
use crate::detect::{TextKind, detect};
use crate::formats::{
    Format, MaxText, Reader, Role, configuration_of_easy_r1, configuration_of_verl, is_known_to_easy_r1,
    is_known_to_verl, is_shipped_by_torchtune, is_torchtune_recipe, of_trainer, overrides,
};
use crate::several::MAX_TEXTS;
use crate::{Argument, Found};
use shardscope_bash::{CommandKind, Script, Word, base_name};
use shardscope_config_tree::{Tree, read_json, read_yaml};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Source, Span};
use std::collections::HashMap;

const ENDS: [&str; 4] = [".yaml", ".yml", ".json", ".toml"];
/// Options that name such a file; Hydra's without the file extension.
const FLAGS: [&str; 4] = ["--config-name", "--config", "--config-file", "--cfg"];
/// Parts of the names of other options that name such a file.
const OF_SETTINGS: [&str; 7] = ["conf", "cfg", "yaml", "args", "recipe", "setting", "param"];
/// torchtitan's option for a file that holds the model, whatever the other words say.
const WHOLE: &str = "--job.config-file";
/// The Hydra group under which NeMo's launcher takes a training's file (`training=gpt3/5b`).
const GROUP: &str = "training=";

/// Programs that take their settings from a file, even if their words change some of them.
const DRIVEN: [&str; 5] = ["axolotl", "llamafactory-cli", "lmf", "tune", "axolotl.cli.train"];

/// Whether the command's program reads from a file what to train.
pub(super) fn is_driven(line: &CommandLine) -> bool {
    let program = line.program.as_ref().map_or("", |word| base_name(word.text()));
    DRIVEN.contains(&program) || is_torchtune_recipe(program)
}

/// Whether the process started here says nothing about how many accelerators train: NeMo's launcher starts a separate
/// training, and a process of MaxText uses all accelerators of its host.
pub(super) fn is_launched(words: &[Argument]) -> bool {
    words.iter().any(|word| word.text.starts_with(GROUP) || MaxText.is_word(&word.text))
}

/// The file that the words name, alone or before all options, if it is missing, and the diagnostic for it. `bare`: the
/// words contain no setting.
pub(super) fn missing(
    line: &CommandLine,
    words: &[Argument],
    source: &Source,
    bare: bool,
) -> Option<(String, Diagnostic)> {
    let whole = |word: &Argument| is_spelt(word.text.split('=').next().unwrap_or(""), WHOLE);
    let group = words.iter().find_map(|word| Some((word.text.strip_prefix(GROUP)?, word.span)));
    // The parsers of transformers, TRL and ms-swift accept a file before all options, which override it.
    let first = words.first().is_some_and(|word| ENDS.iter().any(|end| word.text.ends_with(end)))
        && (words.len() == 1 || words.iter().skip(1).any(|word| word.text.starts_with("--")));
    let of_verl = unknown_to_verl(words)
        .or_else(|| beneath_nemo(line.trainer(), words))
        .or_else(|| beneath_options(line, words));
    if !bare && group.is_none() && !first && of_verl.is_none() && !words.iter().any(whole) {
        return None;
    }
    let group =
        group.filter(|(name, _)| !name.is_empty()).map(|(name, span)| (base_name(name).to_owned(), span));
    let (mut name, span) = group.or(of_verl).or_else(|| named(words))?;
    // Files shipped with torchtune are known by name, and used if no file of that name is given.
    if is_torchtune_recipe(line.trainer()) && words.iter().any(|word| is_shipped_by_torchtune(&word.text)) {
        return None;
    }
    if !ENDS.iter().any(|end| name.ends_with(end)) {
        name.push_str(".yaml");
    }
    absent(name, span, source)
}

/// The configuration beneath settings of verl, or of EasyR1, if it is not one of their own: its contents are unknown.
fn unknown_to_verl(words: &[Argument]) -> Option<(String, Option<Span>)> {
    let has = |start: &str| words.iter().any(|word| word.text.trim_start_matches('+').starts_with(start));
    let of_verl = || configuration_of_verl(words).filter(|name| !is_known_to_verl(name));
    let of_easy_r1 = || configuration_of_easy_r1(words).filter(|name| !is_known_to_easy_r1(name, words));
    let name = match () {
        () if has("actor_rollout_ref.") => of_verl(),
        () if has("worker.") => of_easy_r1(),
        () => None,
    }?;
    let span = words.iter().find(|word| word.text.contains(name)).and_then(|word| word.span);
    (!name.contains('$')).then(|| (base_name(name).to_owned(), span))
}

/// The user's own configuration beneath settings of NeMo 1 (`--config-path=/home/me/conf --config-name=gpt`): layout,
/// recomputation and kernels that the words do not state are those of that file, not of NeMo's own of the same name. A
/// folder given to NeMo's own program is taken for a copy of its files.
fn beneath_nemo(program: &str, words: &[Argument]) -> Option<(String, Option<Span>)> {
    let has = |start: &str| words.iter().any(|word| word.text.trim_start_matches('+').starts_with(start));
    let folder = words.iter().position(|word| word.text.starts_with("--config-path"))?;
    let whose = words.get(folder..).unwrap_or_default().iter().take(2);
    let own = |path: &str| path.contains("examples/nlp");
    let of_nemo = own(program) || whose.into_iter().any(|word| own(&word.text));
    (has("model.") && has("trainer.") && has("--config-name") && !of_nemo).then(|| named(words)).flatten()
}

/// The file beneath the words of ms-swift's command (`swift sft --config sft.yaml`), which override it
/// (`swift/cli/main.py:prepare_config_args`), and beneath those of a Python program (`train.py --config sft.yaml --seed
/// 1`): TRL's parser takes it for defaults, other programs for all of their settings.
fn beneath_options(line: &CommandLine, words: &[Argument]) -> Option<(String, Option<Span>)> {
    let program = line.program.as_ref().map_or("", |word| base_name(word.text()));
    let config = |word: &Argument| word.text == "--config" || word.text.starts_with("--config=");
    // Frameworks whose own files are known by name, or whose words have groups.
    let grouped = |word: &Argument| word.text.split('=').next().is_some_and(|key| key.contains('.'));
    let options =
        program.ends_with(".py") && !words.iter().any(|word| word.text.contains('=') && grouped(word));
    if !matches!(program, "swift" | "megatron") && !options {
        return None;
    }
    let at = words.iter().position(config)?;
    let (name, span) = named(words.get(at..)?)?;
    ENDS.iter().any(|end| name.ends_with(end)).then_some((name, span))
}

/// The experiment of Primus that the environment names
/// (`EXP=examples/megatron/configs/MI355X/llama3.1_8B-BF16-pretrain.yaml`): its launchers pass on words that override
/// it.
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

/// The diagnostic for a settings file, if it is not among the texts.
fn absent(name: String, span: Option<Span>, source: &Source) -> Option<(String, Diagnostic)> {
    if source.parts().iter().any(|part| base_name(&part.name) == name) {
        return None;
    }
    let message = format!("this training takes its settings from {name}, which is not here");
    let said = Diagnostic::error(Code::MissingFile, message).hint(format!("paste or drop {name} as well"));
    Some((name, said.at_some(span)))
}

/// What a script without training options starts, and what to look at instead: another script or a settings file that
/// is not among the texts, or else a program.
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
    // If one of the settings files is among the texts, a missing one is for evaluation or generation.
    let settings = || words().filter(|word| ends(word, &ENDS));
    let none_here = settings().all(|word| absent(&word));
    let file = file.or_else(|| settings().find(absent).filter(|_| none_here));
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

/// A settings file that a command names and that is among the texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    /// The first of the words that name it.
    pub at: usize,
    /// The number of words that name it.
    pub count: usize,
    /// Whether it states the objective, or leaves that to its program's name.
    pub tells_objective: bool,
}

/// A settings file that a command names.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// The words that name it.
    pub given: Given,
    pub format: Format,
    pub tree: Tree,
    /// Its name among the texts; empty if the script itself writes it, so that its places are none of the text.
    pub name: String,
}

/// The settings file that the command names, if it is among the texts and says what to train.
pub(super) fn given(words: &[Argument], program: &str, source: &Source) -> Option<File> {
    let (name, at, count) = place(words)?;
    let mut parts = source.parts().iter().enumerate().take(MAX_TEXTS);
    parts.find_map(|(index, part)| {
        let is_it = base_name(&part.name) == name;
        let text = is_it.then(|| source.part_text(index))?;
        file((at, count), program, &part.name, text, part.span.start)
    })
}

/// The same of a file that the script writes before (`cat > sft.yaml <<EOF`), if all of it is known.
pub(super) fn written(words: &[Argument], program: &str, script: &Script) -> Option<File> {
    let (name, at, count) = place(words)?;
    let known = |file: &&shardscope_bash::File| file.content.first_hole().is_none();
    let here = script.files.iter().rev().find(|file| base_name(file.name.text()) == name).filter(known)?;
    let found = file((at, count), program, &name, here.content.text(), 0)?;
    Some(File { name: String::new(), ..found })
}

fn file((at, count): (usize, usize), program: &str, name: &str, text: &str, base: u32) -> Option<File> {
    let (format, tree) = match detect(name, text, base) {
        TextKind::Settings(format, tree) => (format, tree),
        // Too few keys to tell whose they are: those of the program that takes them.
        TextKind::Other(_) => (of_trainer(program)?, read_settings(name, text, base)?),
        _ => return None,
    };
    let states = |found: &Found| found.field == Field::TrainingObjective;
    let tells_objective = format.read_tree(&tree).found.iter().any(states);
    let given = Given { at, count, tells_objective };
    (format.role() == Role::Training).then(|| File { given, format, tree, name: name.to_owned() })
}

/// The tree of a file that holds keys.
fn read_settings(name: &str, text: &str, base: u32) -> Option<Tree> {
    let tree = if name.ends_with(".json") { read_json(text, base) } else { read_yaml(text, base) };
    let has_keys = tree.documents.first().is_some_and(|root| !root.entries().is_empty());
    has_keys.then_some(tree)
}

/// The settings files that commands name, each read once, however many commands there are.
pub(super) struct Overridden<'s> {
    source: &'s Source,
    trees: HashMap<String, Option<Tree>>,
}

impl<'s> Overridden<'s> {
    pub(super) fn of(source: &'s Source) -> Self {
        Self { source, trees: HashMap::new() }
    }

    /// Whether words override keys of a settings file that they name and that is among the texts.
    pub(super) fn by(&mut self, words: &[Word]) -> bool {
        let words: Vec<Argument> = words.iter().map(|word| Argument::from(word.text())).collect();
        let Some((name, at, count)) = place(&words) else { return false };
        let source = self.source;
        let tree = self.trees.entry(name).or_insert_with(|| given(&words, "", source).map(|file| file.tree));
        let Some(root) = tree.as_ref().and_then(|tree| tree.documents.first()) else { return false };
        let others = [words.get(..at).unwrap_or_default(), words.get(at + count..).unwrap_or_default()];
        overrides(root, &others.concat())
    }
}

fn named(words: &[Argument]) -> Option<(String, Option<Span>)> {
    let (name, at, count) = place(words)?;
    // For an option and its value, the option is shown.
    let shown = if count == 2 && !is_option(words, at) { at + 1 } else { at };
    Some((name, words.get(shown)?.span))
}

/// Whether a word is an option that names a settings file, whatever follows it.
fn is_option(words: &[Argument], at: usize) -> bool {
    let text = words.get(at).map_or("", |word| word.text.as_str());
    FLAGS.iter().chain([&WHOLE]).any(|known| is_spelt(text, known))
}

/// The file that words name, the index of the first of these words, and their number.
fn place(words: &[Argument]) -> Option<(String, usize, usize)> {
    for (at, word) in words.iter().enumerate() {
        let text = word.text.as_str();
        let (flag, inline) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        let next = words.get(at + 1).map(|next| next.text.as_str());
        let named = FLAGS
            .iter()
            .chain([&WHOLE])
            .any(|known| is_spelt(flag, known))
            .then(|| inline.or(next))
            .flatten();
        // A file for testing or prompting a program is not a settings file (`--test_path data/test.json`).
        let before = at.checked_sub(1).and_then(|at| words.get(at)).map_or("", |word| word.text.as_str());
        let behind = before.starts_with("--") && !before.contains('=');
        let other = behind && !OF_SETTINGS.iter().any(|part| before.contains(part));
        // EasyR1's and OmegaConf's `config=train.yaml`.
        let text = text.strip_prefix("config=").unwrap_or(text);
        let file = (!other && ENDS.iter().any(|end| text.ends_with(end))).then_some(text);
        if let Some(name) = named.or(file).filter(|name| !name.is_empty() && !name.starts_with('-')) {
            let name = base_name(name).to_owned();
            return Some(match (named, inline) {
                (Some(_), None) => (name, at, 2),
                (None, _) if behind => (name, at - 1, 2),
                _ => (name, at, 1),
            });
        }
    }
    None
}
