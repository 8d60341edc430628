//! Commands whose only argument is a settings file (`train_grpo.py --config-name grpo_qwen25_7b`): if the file is not
//! among the texts, it is asked for by name.

use super::command_line::CommandLine;
use super::flag::is_spelt;
use super::settings_file::{ENDS, WHOLE, named};
use crate::Argument;
use crate::formats::{
    MaxText, Reader, configuration_of_easy_r1, configuration_of_verl, is_known_to_easy_r1, is_known_to_verl,
    is_of_oumi, is_shipped_by_torchtune, is_torchtune_recipe,
};
use shardscope_bash::{CommandKind, Script, Word, base_name};
use shardscope_source::{Code, Diagnostic, Source, Span};

/// The Hydra group under which NeMo's launcher takes a training's file (`training=gpt3/5b`).
const GROUP: &str = "training=";

/// Programs that take their settings from a file, even if their words change some of them.
const DRIVEN: [&str; 6] = ["axolotl", "llamafactory-cli", "lmf", "tune", "axolotl.cli.train", "oumi"];

/// Whether the command's program reads from a file what to train.
pub(super) fn is_driven(line: &CommandLine) -> bool {
    let program = line.program.as_ref().map_or("", |word| base_name(word.text()));
    let words: Vec<Argument> = line.arguments.iter().map(|word| Argument::from(word.text())).collect();
    DRIVEN.contains(&program) || is_torchtune_recipe(program) || is_of_oumi(&words)
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
    if let Some(named) = named_by_variable(words, source) {
        return Some(named);
    }
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

/// A file that a variable names in front of all options (`llamafactory-cli train $1`, `finetune.py "$CONFIG_FILE"`): what trains is
/// then stated there alone, unless another text may be that file.
fn named_by_variable(words: &[Argument], source: &Source) -> Option<(String, Diagnostic)> {
    let [word] = words else { return None };
    // `{config}` of a template that another program fills in is as open as a variable.
    let identifier = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let inner = word.text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let is_open = word.hole.is_some() || inner.is_some_and(|name| !name.is_empty() && identifier(name));
    let is_name = is_open && !word.text.starts_with('-') && !word.text.contains('=');
    if !is_name || source.parts().len() > 1 {
        return None;
    }
    let name = word.text.trim_matches(['"', '\'']).to_owned();
    let message = format!("this training takes its settings from {name}, which the text does not give");
    let hint = "paste or drop that file as well";
    Some((name, Diagnostic::error(Code::MissingFile, message).hint(hint).at_some(word.span)))
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
/// (`swift/cli/main.py:prepare_config_args`), or TRL's (`trl/scripts/utils.py:TrlParser.parse_args_and_config`), and beneath those of a Python program (`train.py --config sft.yaml --seed
/// 1`): TRL's parser takes it for defaults, other programs for all of their settings.
fn beneath_options(line: &CommandLine, words: &[Argument]) -> Option<(String, Option<Span>)> {
    let program = line.program.as_ref().map_or("", |word| base_name(word.text()));
    let config = |word: &Argument| word.text == "--config" || word.text.starts_with("--config=");
    // Frameworks whose own files are known by name, or whose words have groups.
    let grouped = |word: &Argument| word.text.split('=').next().is_some_and(|key| key.contains('.'));
    let options =
        program.ends_with(".py") && !words.iter().any(|word| word.text.contains('=') && grouped(word));
    if !matches!(program, "swift" | "megatron" | "trl") && !options {
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
