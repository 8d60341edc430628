//! The effect of framework options that no reader looks at: nothing, a slight change of a figure, or something that is
//! not modelled. Each was classified by what its framework does with it. Options of forks whose source was not examined
//! remain unknown (`telling.rs`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::telling::says_no;
use crate::{Argument, Effect, NotModelled};
use shardscope_source::{Code, Diagnostic, LaterText, Span};

/// In a program with the feature `tables-later` no options of the Megatron family beyond those that are read are
/// known until the table is supplied.
pub static MEGATRON: LaterText = LaterText::new(
    "options-megatron.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("megatron.txt")) },
);

/// The same for trainers based on transformers, DeepSpeed or plain PyTorch, and for reinforcement learning.
pub static TRAINERS: LaterText = LaterText::new(
    "options-trainers.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("trainers.txt")) },
);

/// ms-swift's commands over Megatron-LM: the name of their section.
pub const SWIFT_MEGATRON: &str = "ms-swift's megatron commands";

/// What an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing, for this reason.
    Nothing(&'static str),
    /// A figure, slightly, or one that no estimate covers, for this reason.
    Little(&'static str),
    /// Something that is not modelled.
    Stops(Effect, &'static str),
    /// That the program, which this option tells, is not modelled.
    Program(Effect, &'static str),
}

/// An option at any value.
#[derive(Debug)]
struct Row {
    /// Its name in snake case, preceded by as many parts of its path as distinguish it from others.
    path: String,
    changes: Changes,
    /// Values at which it changes nothing, separated by commas; `off` is any negative value. Without such values, an
    /// option that stops the verdict has no effect when it is off.
    harmless: &'static str,
}

/// The options of a framework.
#[derive(Debug, Default)]
struct Framework {
    /// The reader: `--` for Megatron's command line, otherwise a reader's name for its files.
    reader: &'static str,
    /// Readers whose options it has in addition to its own.
    others: Vec<&'static str>,
    /// Whether its rows have full paths, in which list indices are 0: groups of trainers have keys with the same names.
    whole: bool,
    /// Options, one of which must be present: prefixes on a command line of Megatron's, else paths or, with a star, prefixes of
    /// them; empty if the names belong to this framework only.
    signs: Vec<&'static str>,
    /// Whether it is a program of another kind than its reader's, which stops as a program by its signs.
    is_foreign: bool,
    /// Rows by the last part of their path, in snake case.
    rows: BTreeMap<String, Vec<Row>>,
    /// Rows for prefixes.
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
    /// `name | reader | signs`, the reader with ` !` for a program of another kind, or `reader + other + other` if paths are full.
    fn headed(head: &'static str) -> Self {
        if let Some((_, of)) = head.split_once(" | ") {
            let (reader, signs) = of.split_once(" | ").unwrap_or((of, ""));
            let signs = signs.split_ascii_whitespace().collect();
            let (reader, is_foreign) = reader.strip_suffix(" !").map_or((reader, false), |own| (own, true));
            return Self { reader, signs, is_foreign, ..Self::default() };
        }
        let mut readers = head.split(" + ");
        let reader = readers.next().unwrap_or_default();
        Self { reader, others: readers.collect(), whole: true, ..Self::default() }
    }

    fn take(&mut self, word: &'static str, changes: Changes) {
        let (path, harmless) = word.split_once('=').unwrap_or((word, ""));
        let changes = match changes {
            Changes::Stops(effect, what) if self.is_foreign => Changes::Program(effect, what),
            changes => changes,
        };
        match path.strip_suffix('*') {
            Some(path) => self.beginnings.push(Row { path: snake(path), changes, harmless }),
            None => {
                let path = snake(path);
                let rows = self.rows.entry(last(&path).to_owned()).or_default();
                rows.push(Row { path, changes, harmless });
            }
        }
    }

    /// Whether its options need no sign.
    fn is_alone(self: &&Self) -> bool {
        self.signs.is_empty()
    }

    /// The row of an option: if two match, the one with the longer path.
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

/// The meaning of a group's heading: `nothing: reason`, `little: reason`, or an effect and what is not modelled.
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

/// A path in which every list index is 0.
fn at_first(path: &str) -> String {
    let place = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
    path.split('.').map(|name| if place(name) { "0" } else { name }).collect::<Vec<_>>().join(".")
}

/// The frameworks to which the words of a Megatron command line may belong.
#[derive(Debug)]
pub struct OfWords(Vec<&'static Framework>);

impl OfWords {
    /// Frameworks with one of their signs among the words, and those whose option names are theirs alone.
    #[must_use]
    pub fn new(words: &[Argument]) -> Self {
        let begins = |word: &Argument, sign: &str| {
            let name = word.text.strip_prefix("--").unwrap_or_default();
            name.len() >= sign.len()
                && sign.bytes().zip(name.bytes()).all(|(a, b)| a == if b == b'_' { b'-' } else { b })
        };
        let reads_options = |framework: &&Framework| {
            let there = |sign: &&str| words.iter().any(|word| begins(word, sign));
            framework.signs.is_empty() || framework.signs.iter().any(there)
        };
        Self(frameworks().iter().filter(|framework| framework.reader == "--").filter(reads_options).collect())
    }

    /// The effect of an option: if several frameworks have it, the largest effect.
    #[must_use]
    pub fn changes(&self, name: &str, value: &str) -> Option<Changes> {
        most(self.0.iter().copied(), name, value)
    }
}

/// For each framework on Megatron's command line, the first option prefix by which it is recognized.
pub fn signs() -> impl Iterator<Item = &'static str> {
    called("--").filter_map(|framework| framework.signs.first().copied())
}

/// The effect of a key that this reader's framework has, or another framework whose options it includes.
pub fn of_key(reader: &str, path: &str, value: &str) -> Option<Changes> {
    OfKeys::new(reader, &|_| false).changes(path, value)
}

/// The frameworks to which the keys of one text may belong.
#[derive(Debug)]
pub struct OfKeys {
    /// Programs told by an option of their own, then the frameworks that need no sign: a group each for the reader and
    /// for those whose options it includes. The first group that has a key tells what it changes.
    groups: Vec<Vec<&'static Framework>>,
}

impl OfKeys {
    /// Those of a reader. `has` says whether a sign is among the keys: it is asked once a sign, and not once a key, so
    /// that a text of many keys takes no more than its length.
    pub fn new(reader: &str, has: &dyn Fn(&str) -> bool) -> Self {
        let others = called(reader).flat_map(|framework| framework.others.iter().copied());
        let readers: Vec<&str> = std::iter::once(reader).chain(others).collect();
        let told = |framework: &&Framework| framework.signs.iter().any(|sign| has(sign));
        let programs = readers.iter().map(|name| called(name).filter(told).collect());
        let alone = readers.iter().map(|name| called(name).filter(Framework::is_alone).collect());
        Self { groups: programs.chain(alone).collect() }
    }

    /// The effect of a key: if several frameworks of a group have it, the largest.
    pub fn changes(&self, path: &str, value: &str) -> Option<Changes> {
        self.groups.iter().find_map(|group| most(group.iter().copied(), path, value))
    }
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
        Changes::Program(..) => 3,
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
    /// The item that stops the verdict at the option, if any.
    pub(crate) fn stop(self, name: &str, value: &str, span: Option<Span>) -> Option<NotModelled> {
        let item = match self {
            Self::Stops(effect, what) => NotModelled::new(name, value, effect, what),
            Self::Program(effect, what) => NotModelled::of_program(name, effect, what),
            Self::Nothing(_) | Self::Little(_) => return None,
        };
        Some(item.at_some(span))
    }

    /// Adds this item; a program is told once.
    pub(crate) fn stop_in(self, items: &mut Vec<NotModelled>, name: &str, value: &str, span: Option<Span>) {
        let is_told = |what: &str| items.iter().any(|known| known.message == what);
        if !matches!(self, Self::Program(_, what) if is_told(what)) {
            items.extend(self.stop(name, value, span));
        }
    }
}

/// The warning about options that change a figure only slightly, each with its reason.
pub(crate) fn little(mut named: Vec<(&'static str, String)>, span: Option<Span>) -> Option<Diagnostic> {
    /// Most options listed by name.
    const LISTED: usize = 40;
    named.sort();
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
