//! What the options of frameworks change that no reader looks at: nothing, a figure by little, or something that is not modelled. Each
//! was classed by what its framework does with it. Options of forks that nobody here has read stay unknown (`telling.rs`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::telling::says_no;
use crate::{Argument, Effect, NotModelled};
use shardscope_source::{Code, Diagnostic, LaterText, Span};

/// Until a program with the feature `tables-later` is given it, no option of the Megatron family is known beside those that are read.
pub(crate) static MEGATRON: LaterText = LaterText::new(
    "options-megatron.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("megatron.txt")) },
);

/// The same of trainers made of transformers, DeepSpeed or plain PyTorch, and of reinforcement learning.
pub(crate) static TRAINERS: LaterText = LaterText::new(
    "options-trainers.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("trainers.txt")) },
);

/// ms-swift's commands over Megatron-LM, by the name of their section.
pub(crate) const SWIFT_MEGATRON: &str = "ms-swift's megatron commands";

/// What an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// Nothing, for this reason.
    Nothing(&'static str),
    /// A figure by little, or one that no estimate looks at, for this reason.
    Little(&'static str),
    /// What is not modelled.
    Stops(Effect, &'static str),
}

/// An option at any value.
#[derive(Debug)]
struct Row {
    /// Its name in snake case, with so many parts of its path before it as tell it from others.
    path: String,
    changes: Changes,
    /// Values at which it changes nothing, with commas between them; `off` is any way to say no. Without any, what stops does
    /// nothing where it is off.
    harmless: &'static str,
}

/// The options of a framework.
#[derive(Debug, Default)]
struct Framework {
    /// The reader: `--` for Megatron's command line, else what a reader calls its files.
    reader: &'static str,
    /// Readers whose options it has beside its own.
    others: Vec<&'static str>,
    /// Whether its rows have whole paths, in which the places of a list are 0: groups of trainers have keys of the same names.
    whole: bool,
    /// Beginnings of options of which one must be there; none are needed where names are the framework's alone.
    signs: Vec<&'static str>,
    /// Rows by the last part of their path, in snake case.
    rows: BTreeMap<String, Vec<Row>>,
    /// Rows of beginnings.
    beginnings: Vec<Row>,
}

fn frameworks() -> &'static [Framework] {
    static FRAMEWORKS: OnceLock<Vec<Framework>> = OnceLock::new();
    FRAMEWORKS.get_or_init(|| {
        let (mut all, mut changes) = (Vec::<Framework>::new(), None);
        for line in MEGATRON.text().lines().chain(TRAINERS.text().lines()) {
            if let Some(head) = line.strip_prefix("= ") {
                all.push(Framework::headed(head));
                changes = None;
            } else if let Some(head) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                changes = stated(head);
            } else if let Some((framework, changes)) = all.last_mut().zip(changes)
                && !line.starts_with('#')
            {
                for word in line.split_ascii_whitespace() {
                    framework.take(word, changes);
                }
            }
        }
        all
    })
}

impl Framework {
    /// `name | reader | signs`, or `reader + other + other` where paths are whole.
    fn headed(head: &'static str) -> Self {
        if let Some((_, of)) = head.split_once(" | ") {
            let (reader, signs) = of.split_once(" | ").unwrap_or((of, ""));
            let signs = signs.split_ascii_whitespace().collect();
            return Self { reader, signs, ..Self::default() };
        }
        let mut readers = head.split(" + ");
        let reader = readers.next().unwrap_or_default();
        Self { reader, others: readers.collect(), whole: true, ..Self::default() }
    }

    fn take(&mut self, word: &'static str, changes: Changes) {
        let (path, harmless) = word.split_once('=').unwrap_or((word, ""));
        match path.strip_suffix('*') {
            Some(path) => self.beginnings.push(Row { path: snake(path), changes, harmless }),
            None => {
                let path = snake(path);
                let rows = self.rows.entry(last(&path).to_owned()).or_default();
                rows.push(Row { path, changes, harmless });
            }
        }
    }

    /// The row of an option: of two that fit, the one of the longer path.
    fn row(&self, path: &str) -> Option<&Row> {
        let path = if self.whole { at_first(&snake(path)) } else { snake(path) };
        let ends = |row: &&Row| {
            path.strip_suffix(&row.path)
                .is_some_and(|before| before.is_empty() || !self.whole && before.ends_with('.'))
        };
        let named = self.rows.get(last(&path)).into_iter().flatten().filter(ends);
        let begun = || self.beginnings.iter().filter(|row| path.starts_with(&row.path));
        named.max_by_key(|row| row.path.len()).or_else(|| begun().max_by_key(|row| row.path.len()))
    }
}

/// What the head of some lines says: `nothing: reason`, `little: reason`, or an effect and what is not modelled.
fn stated(head: &'static str) -> Option<Changes> {
    let (kind, what) = head.split_once(": ")?;
    Some(match kind {
        "nothing" => Changes::Nothing(what),
        "little" => Changes::Little(what),
        effect => Changes::Stops(Effect::named(effect)?, what),
    })
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn snake(path: &str) -> String {
    path.trim_start_matches('-').to_ascii_lowercase().replace('-', "_")
}

/// A path in which every place of a list is the first.
fn at_first(path: &str) -> String {
    let place = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
    path.split('.').map(|name| if place(name) { "0" } else { name }).collect::<Vec<_>>().join(".")
}

/// The frameworks whose options some words of Megatron's command line may be.
#[derive(Debug)]
pub(crate) struct OfWords(Vec<&'static Framework>);

impl OfWords {
    /// Those of which an option is there that tells them, and those whose names are theirs alone.
    pub(crate) fn new(words: &[Argument]) -> Self {
        let begins = |word: &Argument, sign: &str| {
            let name = word.text.strip_prefix("--").unwrap_or_default();
            name.len() >= sign.len()
                && sign.bytes().zip(name.bytes()).all(|(a, b)| a == if b == b'_' { b'-' } else { b })
        };
        let told = |framework: &&Framework| {
            let there = |sign: &&str| words.iter().any(|word| begins(word, sign));
            framework.signs.is_empty() || framework.signs.iter().any(there)
        };
        Self(frameworks().iter().filter(|framework| framework.reader == "--").filter(told).collect())
    }

    /// What an option changes: of several frameworks' that which changes most.
    pub(crate) fn changes(&self, name: &str, value: &str) -> Option<Changes> {
        most(self.0.iter().copied(), name, value)
    }
}

/// What a key changes that the framework of this reader has, or one whose options that has too.
pub(crate) fn of_key(reader: &str, path: &str, value: &str) -> Option<Changes> {
    let others = || called(reader).flat_map(|framework| &framework.others);
    most(called(reader), path, value).or_else(|| others().find_map(|other| most(called(other), path, value)))
}

fn called(reader: &str) -> impl Iterator<Item = &'static Framework> {
    frameworks().iter().filter(move |framework| framework.reader == reader)
}

fn most<'a>(among: impl Iterator<Item = &'a Framework>, path: &str, value: &str) -> Option<Changes> {
    let changes = among.filter_map(|framework| framework.row(path)).map(|row| row.at(value));
    changes.max_by_key(|changes| match changes {
        Changes::Nothing(_) => 0,
        Changes::Little(_) => 1,
        Changes::Stops(..) => 2,
    })
}

impl Row {
    fn at(&self, value: &str) -> Changes {
        let stops = matches!(self.changes, Changes::Stops(..));
        // A switch without a value is on.
        let value = if value.is_empty() { "true" } else { value };
        let off = says_no(value) || value == "[]";
        let same = |known: &str| known.eq_ignore_ascii_case(value) || known == "off" && off;
        let harmless = match self.harmless {
            "" => stops && off,
            listed => listed.split(',').any(same),
        };
        if harmless { Changes::Nothing("switched off, or at the usual value") } else { self.changes }
    }
}

impl Changes {
    /// What stops at the option, if anything does.
    pub(crate) fn stop(self, name: &str, value: &str, span: Option<Span>) -> Option<NotModelled> {
        let Self::Stops(effect, what) = self else { return None };
        Some(NotModelled::new(name, value, effect, what).at_some(span))
    }
}

/// The warning about options that change a figure by little, each with its reason.
pub(crate) fn little(mut named: Vec<(&'static str, String)>, span: Option<Span>) -> Option<Diagnostic> {
    /// Options listed by name at most.
    const LISTED: usize = 40;
    shardscope_sorting::sort(&mut named);
    named.dedup();
    let count = named.len();
    let mut listed = String::new();
    let mut last = "";
    for (index, (why, name)) in named.iter().enumerate().take(LISTED) {
        match () {
            () if *why == last => listed.push_str(", "),
            () => {
                if index > 0 {
                    listed.push_str("; ");
                }
                listed.push_str(why);
                listed.push_str(": ");
                last = why;
            }
        }
        listed.push_str(name);
    }
    if count > LISTED {
        listed.push_str(", …");
    }
    let message = match count {
        0 => return None,
        1 => format!("an option with little or no effect on the estimate. {listed}"),
        count => {
            format!("{count} options with little or no effect on the estimate. {listed}")
        }
    };
    Some(Diagnostic::warning(Code::NotEstimated, message).at_some(span))
}

#[cfg(test)]
mod tests;
