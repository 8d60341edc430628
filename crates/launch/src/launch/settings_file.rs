//! The settings file that a command names, whether it is among the texts or the script writes it.

use super::ask;
use super::flag::is_spelt;
use crate::detect::{TextKind, detect};
use crate::formats::{Format, Role, has_no_place, of_trainer, overrides};
use crate::limits::MAX_TEXTS;
use crate::{Argument, Effect, Found, NotModelled};
use shardscope_bash::{Piece, Script, Value, Word, base_name};
use shardscope_config_tree::{Node, Tree, read_json, read_yaml};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Source, Span};
use std::collections::HashMap;

pub(super) const ENDS: [&str; 4] = [".yaml", ".yml", ".json", ".toml"];
/// Options that name such a file; Hydra's without the file extension.
const FLAGS: [&str; 4] = ["--config-name", "--config", "--config-file", "--cfg"];
/// Parts of the names of other options that name such a file.
const OF_SETTINGS: [&str; 7] = ["conf", "cfg", "yaml", "args", "recipe", "setting", "param"];
/// torchtitan's option for a file that holds the model, whatever the other words say.
pub(super) const WHOLE: &str = "--job.config-file";
/// How much of a key's name is shown. Unit: character.
const LONGEST_NAME: usize = 120;

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

impl File {
    /// Words that have no place in the file.
    pub(super) fn passed_over(&self, words: &[Argument]) -> Vec<NotModelled> {
        self.tree.documents.first().map_or_else(Vec::new, |root| without_place(root, words))
    }
}

/// Words that take keys out of a file (Hydra's `~policy.dtensor_cfg`), or set keys for which it has no place: what the program
/// does without the one or with the other is not known.
fn without_place(root: &Node, words: &[Argument]) -> Vec<NotModelled> {
    let item = |word: &Argument| {
        let said = |body: &str, what| {
            let (path, value) = body.split_once('=').unwrap_or((body, ""));
            // Its first keys are enough to find a long one.
            let name: String = path.chars().take(LONGEST_NAME).collect();
            NotModelled::new(&name, value, Effect::Memory, what).at_some(word.span)
        };
        if let Some(body) = word.text.strip_prefix('~') {
            let top = body.split(['.', '=']).next().unwrap_or_default();
            return root.get(top).map(|_| said(body, "a key taken out of the settings file"));
        }
        let body = word.text.trim_start_matches(['-', '+']);
        let is_set = body.contains('=') || word.text.starts_with("--");
        let path = body.split('=').next().unwrap_or_default();
        let lost = is_set && has_no_place(root, path);
        lost.then(|| said(body, "a key below a value of the settings file"))
    };
    words.iter().filter_map(item).collect()
}

/// A command that may name a settings file.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    pub words: &'a [Argument],
    pub script: &'a Script,
    /// Which of the script's commands it is; none if it is none of them.
    pub at: Option<usize>,
    pub source: &'a Source,
}

impl Naming<'_> {
    /// The settings file as it is when the command runs: what the script has written there, or else a text.
    pub(super) fn read(self, program: &str) -> Option<File> {
        let (path, first, count) = place(self.words)?;
        match written(&path, self.script, self.at) {
            Some(content) => {
                let text = open(content, self.script)?;
                let found = file((first, count), program, base_name(&path), &text, 0)?;
                Some(File { name: String::new(), ..found })
            }
            None => given(self.words, program, self.source),
        }
    }

    /// What is to be said, with the file's name, where it cannot be told which text the file is, or which keys it has.
    pub(super) fn unclear(self) -> Option<(String, Diagnostic)> {
        let (path, at, _) = place(self.words)?;
        let (name, span) = named(self.words)?;
        // DeepSpeed's file says what is sharded, which is asked for, and not what trains.
        let of_engine = self.words.get(at).is_some_and(|word| word.text.contains("deepspeed"));
        let said = match written(&path, self.script, self.at) {
            Some(_) if of_engine => return None,
            Some(content) if open(content, self.script).is_none() => {
                let message = format!("which settings {name} has depends on what this script does not say");
                Diagnostic::error(Code::MissingFile, message).hint("paste the file as it is written")
            }
            Some(_) => return None,
            None => {
                let names = called(&path, self.source).err()?;
                let message = format!("{path} may be any of {}, which differ", names.join(", "));
                Diagnostic::error(Code::MissingFile, message)
                    .hint("leave the others out, or name the file with its folder")
            }
        };
        Some((name, said.at_some(span)))
    }
}

/// The settings file that the command names, if it is among the texts and says what to train.
fn given(words: &[Argument], program: &str, source: &Source) -> Option<File> {
    let (path, at, count) = place(words)?;
    let index = called(&path, source).ok()??;
    let part = source.parts().get(index)?;
    file((at, count), program, &part.name, source.part_text(index), part.span.start)
}

/// The text that a path names: the one whose folders fit best; none if none has its name.
///
/// # Errors
/// The names of several that fit equally well and differ.
fn called<'s>(path: &str, source: &'s Source) -> Result<Option<usize>, Vec<&'s str>> {
    let parts = source.parts().iter().take(MAX_TEXTS).enumerate();
    let alike = |name: &str| {
        let common =
            components(path).rev().zip(components(name).rev()).take_while(|(one, other)| one == other);
        let common = common.count();
        // Of the text in the folder itself nothing is left over.
        (common, common == components(name).count())
    };
    let fits: Vec<(usize, &str, (usize, bool))> = parts
        .filter(|(_, part)| base_name(&part.name) == base_name(path))
        .map(|(index, part)| (index, part.name.as_str(), alike(&part.name)))
        .collect();
    let Some(best) = fits.iter().map(|(_, _, alike)| *alike).max() else { return Ok(None) };
    let best: Vec<_> = fits.into_iter().filter(|(_, _, alike)| *alike == best).collect();
    let (first, ..) = best[0];
    if best.iter().all(|(index, ..)| source.part_text(*index) == source.part_text(first)) {
        return Ok(Some(first));
    }
    Err(best.into_iter().map(|(_, name, _)| name).collect())
}

/// The folders and the name of a path.
fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "."))
}

/// What the script has written to a path before its command `at`. A folder that only the machine knows may be the one that
/// the command runs in.
fn written<'s>(path: &str, script: &'s Script, at: Option<usize>) -> Option<&'s Value> {
    let is_anywhere = |path: &str| path.starts_with(['/', '$', '~']);
    let same = |name: &str| {
        let (mut one, mut other) = (components(path).rev(), components(name).rev());
        let rest = loop {
            match (one.next(), other.next()) {
                (None, None) => return true,
                (Some(one), Some(other)) if one == other => {}
                (None, Some(_)) => break name,
                (Some(_), None) => break path,
                _ => return false,
            }
        };
        is_anywhere(rest)
    };
    let files = script.overwritten.iter().chain(&script.files);
    let before = files.filter(|file| at.is_none_or(|at| file.commands <= at) && same(file.name.text()));
    before.max_by_key(|file| file.commands).map(|file| &file.content)
}

/// A written text whose keys are known: what a value leaves to a variable is a reference to it, as in any settings file.
fn open(content: &Value, script: &Script) -> Option<String> {
    let mut text = String::new();
    let mut pieces = content.pieces().peekable();
    while let Some(piece) = pieces.next() {
        let Some(id) = piece.hole else {
            text.push_str(piece.text);
            continue;
        };
        let line = text.rsplit('\n').next().unwrap_or_default();
        let is_comment = line.trim_start().starts_with('#') || line.contains(" #");
        let is_value = line.contains(": ") || line.trim_start().starts_with("- ") || line.contains("\":");
        if !is_value && !is_comment {
            return None;
        }
        let ends = |next: Option<&Piece<'_>>| {
            next.is_none_or(|next| next.hole.is_none() && next.text.starts_with(['\n', ',', '}', ']']))
        };
        let whole = line.trim_end().ends_with([':', ',', '[', '-']) && ends(pieces.peek());
        let name: String = ask::name(script, id)
            .chars()
            .map(|sign| if sign.is_ascii_alphanumeric() { sign } else { '_' })
            .collect();
        let quote = if whole { "\"" } else { "" };
        text.push_str(&format!("{quote}${{{name}}}{quote}"));
    }
    Some(text)
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
        let Some((path, at, count)) = place(&words) else { return false };
        let source = self.source;
        let tree = self.trees.entry(path).or_insert_with(|| given(&words, "", source).map(|file| file.tree));
        let Some(root) = tree.as_ref().and_then(|tree| tree.documents.first()) else { return false };
        let others = [words.get(..at).unwrap_or_default(), words.get(at + count..).unwrap_or_default()];
        let others = others.concat();
        overrides(root, &others) || !without_place(root, &others).is_empty()
    }
}

pub(super) fn named(words: &[Argument]) -> Option<(String, Option<Span>)> {
    let (path, at, count) = place(words)?;
    let name = base_name(&path).to_owned();
    // For an option and its value, the option is shown.
    let shown = if count == 2 && !is_option(words, at) { at + 1 } else { at };
    Some((name, words.get(shown)?.span))
}

/// Whether a word is an option that names a settings file, whatever follows it.
fn is_option(words: &[Argument], at: usize) -> bool {
    let text = words.get(at).map_or("", |word| word.text.as_str());
    FLAGS.iter().chain([&WHOLE]).any(|known| is_spelt(text, known))
}

/// Parts of the names of options whose file is the engine's or the data's, whatever else is in the name.
const OF_OTHERS: [&str; 5] = ["deepspeed", "ds_config", "fsdp", "accelerate", "data"];

/// The path of the file that words name, the index of the first of these words, and their number: what is said by an
/// option for it comes before other words that end like a settings file.
fn place(words: &[Argument]) -> Option<(String, usize, usize)> {
    let by_option = |named: &Named<'_>| named.by_option && ENDS.iter().any(|end| named.path.ends_with(end));
    let own = |named: &Named<'_>| !named.of_others;
    let found = |fits: &dyn Fn(&Named<'_>) -> bool| {
        (0..words.len()).find_map(|at| name_at(words, at).filter(|named| fits(named)))
    };
    let named = found(&by_option).or_else(|| found(&own)).or_else(|| found(&|_| true))?;
    Some((named.path.to_owned(), named.at, named.count))
}

/// A file that words name.
struct Named<'w> {
    path: &'w str,
    at: usize,
    count: usize,
    /// Whether by an option that names settings alone.
    by_option: bool,
    /// Whether by an option that names settings of something else.
    of_others: bool,
}

fn name_at(words: &[Argument], at: usize) -> Option<Named<'_>> {
    let text = words.get(at)?.text.as_str();
    let (flag, inline) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
    let next = words.get(at + 1).map(|next| next.text.as_str());
    let named =
        FLAGS.iter().chain([&WHOLE]).any(|known| is_spelt(flag, known)).then(|| inline.or(next)).flatten();
    // A file for testing or prompting a program is not a settings file (`--test_path data/test.json`).
    let before = at.checked_sub(1).and_then(|at| words.get(at)).map_or("", |word| word.text.as_str());
    let behind = before.starts_with("--") && !before.contains('=');
    let other = behind && !OF_SETTINGS.iter().any(|part| before.contains(part));
    // EasyR1's and OmegaConf's `config=train.yaml`.
    let text = text.strip_prefix("config=").unwrap_or(text);
    let file = (!other && ENDS.iter().any(|end| text.ends_with(end))).then_some(text);
    let path = named.or(file).filter(|name| !name.is_empty() && !name.starts_with('-'))?;
    let (at, count) = match (named, inline) {
        (Some(_), None) => (at, 2),
        (None, _) if behind => (at - 1, 2),
        _ => (at, 1),
    };
    let option = words.get(at).map_or("", |word| word.text.as_str());
    let of_others = option.starts_with("--") && OF_OTHERS.iter().any(|part| option.contains(part));
    Some(Named { path, at, count, by_option: named.is_some(), of_others })
}
