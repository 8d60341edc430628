//! A settings file as a list of its scalars, each under the keys that lead to it.

use std::cell::Cell;

use crate::{Argument, Effect, Found, NotModelled};
use shardscope_config_tree::interpolate::expand;
use shardscope_config_tree::{Node, Value, scalar};
use shardscope_source::Span;

/// Longest list that is represented as one value; real ones have at most one item per layer.
const LONGEST_LIST: usize = 4096;

/// Most scalars stored from one text; real ones have a few hundred.
const MAX_LEAVES: usize = 20_000;
/// Most references followed in one text.
const MAX_LOOKUPS: u32 = 1_000;

/// One scalar, or list of scalars, of a settings file.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// Its keys, joined by dots.
    pub(super) path: String,
    /// Its text; a list as `[a,b]`; empty if it has no value.
    pub(super) value: String,
    /// The position of the value; `None` for a word without one.
    pub(super) span: Option<Span>,
    /// The variable that the value depends on, if that is not known.
    pub(super) hole: Option<String>,
    /// The file that states it, if the text only builds on that file and its values are known here.
    pub(super) base: Option<String>,
    /// Whether it is added by Hydra's syntax (`+key=value`), which Hydra rejects if the program's
    /// own configuration has that key.
    pub(super) added: bool,
    /// Whether a reader has looked at it.
    pub(super) used: Cell<bool>,
    /// Whether a reader asked for a boolean where the text leaves one open.
    pub(super) undecided: Cell<bool>,
}

/// The scalars of a settings file.
#[derive(Debug, Default)]
pub(super) struct Scalars(Vec<Leaf>);

impl Scalars {
    /// The scalars under a node.
    pub(super) fn from_node(node: &Node) -> Self {
        let mut scalars = Self::default();
        scalars.collect(node, &mut String::new());
        scalars.expand_all();
        scalars
    }

    /// The scalars under a node, which override those that it builds on.
    pub(super) fn on(bases: Vec<Leaf>, node: &Node) -> Self {
        let mut scalars = Self(bases);
        scalars.collect(node, &mut String::new());
        scalars.expand_all();
        scalars
    }

    /// The scalars of words `a.b=value`, in Hydra's syntax (with a leading `+` or `++`), or `--a.b value`.
    pub(super) fn of_words(words: &[Argument]) -> Self {
        Self::of_words_under(words, &[])
    }

    /// The same, including keys without a dot that begin with one of `tops`.
    pub(super) fn of_words_under(words: &[Argument], tops: &[&str]) -> Self {
        let mut scalars = Self::default();
        for (index, word) in words.iter().enumerate() {
            let text = word.text.trim_start_matches(['-', '+']);
            let next = words.get(index + 1).filter(|next| !next.text.starts_with("--"));
            let place = |from: usize| {
                let from = u32::try_from(word.text.len() - text.len() + from).unwrap_or(0);
                let exact = |span: &Span| span.len() as usize == word.text.len();
                word.span.filter(exact).map(|span| span.part(from, span.len())).or(word.span)
            };
            let (path, value, span, hole) = match (text.split_once('='), next) {
                (Some((path, value)), _) => (path, unquoted(value), place(path.len() + 1), &word.hole),
                _ if !word.text.starts_with("--") => continue,
                (None, Some(value)) => (text, value.text.as_str(), value.span, &value.hole),
                (None, None) => (text, "true", place(0), &None),
            };
            if is_path(path) || tops.iter().any(|top| path.starts_with(top)) {
                scalars.push(path, value, span, hole.clone());
                let adds = word.text.starts_with('+') && !word.text.starts_with("++");
                if let Some(leaf) = scalars.0.last_mut().filter(|leaf| leaf.path == path) {
                    leaf.added = adds;
                }
            }
        }
        scalars.expand_all();
        scalars
    }

    /// These scalars, with references among them resolved.
    pub(super) fn from_leaves(mut leaves: Vec<Leaf>) -> Self {
        leaves.truncate(MAX_LEAVES);
        let mut scalars = Self(leaves);
        scalars.expand_all();
        scalars
    }

    /// Adds the scalars of another text, which override those already there.
    pub(super) fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// Removes a path and everything below it.
    pub(super) fn take_away(&mut self, path: &str) {
        self.0.retain(|leaf| {
            !leaf.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
    }

    /// All scalars.
    pub(super) fn all(&self) -> &[Leaf] {
        &self.0
    }

    fn collect(&mut self, node: &Node, path: &mut String) {
        let list = !node.items().is_empty() && node.items().iter().all(|item| item.entries().is_empty());
        match &node.value {
            Value::Scalar(_) => self.push(path, node.word().unwrap_or(""), Some(node.span), None),
            Value::List(items) if list || items.is_empty() => {
                self.push(path, &listed(node), Some(node.span), None);
            }
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(item, &index.to_string(), path);
                }
            }
            // A group that is there with nothing in it (`[inference]`).
            Value::Map(entries) if entries.is_empty() && !path.is_empty() => {
                self.push(path, "", Some(node.span), None);
            }
            Value::Map(entries) => entries.iter().for_each(|entry| self.below(&entry.node, &entry.key, path)),
        }
    }

    fn below(&mut self, node: &Node, key: &str, path: &mut String) {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        self.collect(node, path);
        path.truncate(length);
    }

    pub(super) fn push(&mut self, path: &str, value: &str, span: Option<Span>, hole: Option<String>) {
        if self.0.len() == MAX_LEAVES {
            return;
        }
        let value = if matches!(value, "null" | "None" | "~") { "" } else { value };
        self.0.push(Leaf { path: path.to_owned(), value: value.to_owned(), span, hole, ..Leaf::default() });
    }

    fn expand_all(&mut self) {
        let lookups = Cell::new(0);
        for index in 0..self.0.len() {
            let leaf = &self.0[index];
            // A variable that bash leaves open is not a reference within a settings file.
            if leaf.hole.is_some() || !leaf.value.starts_with("${") {
                continue;
            }
            let look = |path: &str| {
                lookups.set(lookups.get() + 1);
                let leaf = if lookups.get() > MAX_LOOKUPS { None } else { find(&self.0, path) };
                leaf.map(|leaf| leaf.value.clone())
            };
            let expanded = expand(&leaf.value, &leaf.path, &look);
            let leaf = &mut self.0[index];
            match expanded {
                Ok(value) => leaf.value = value,
                Err(unknown) => leaf.hole = Some(unknown.0),
            }
        }
    }
}

/// The last leaf with this path; `-` and `_` are treated as equal.
pub(super) fn find<'t>(leaves: &'t [Leaf], path: &str) -> Option<&'t Leaf> {
    leaves.iter().rfind(|leaf| same_path(&leaf.path, path))
}

/// What stops the verdict at switches that a reader took for off because the text leaves them open, except those that are
/// asked for.
pub(super) fn open_switches(leaves: &[Leaf], found: &[Found]) -> impl Iterator<Item = NotModelled> {
    let asked = |leaf: &Leaf| {
        found.iter().any(|found| found.hole.is_some() && found.flag.as_deref() == Some(leaf.path.as_str()))
    };
    leaves.iter().filter(move |leaf| leaf.undecided.get() && !asked(leaf)).filter_map(|leaf| {
        let what = format!("a switch that depends on {}, which is not given here", leaf.left_open()?);
        Some(NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, &what).at_some(leaf.span))
    })
}

impl Leaf {
    /// A setting of a base file, as written there.
    pub(super) fn of_base(file: &str, path: &str, value: &str) -> Self {
        let value = if value == "null" { "" } else { value };
        Self {
            path: path.to_owned(),
            value: value.to_owned(),
            base: Some(file.to_owned()),
            ..Self::default()
        }
    }

    /// Its whole number, in the notation of any format.
    pub(super) fn whole(&self) -> Option<u64> {
        scalar::whole(&self.value)
    }

    /// Its boolean value, also written as a number: arguments of transformers accept `1` and `0`
    /// (`transformers/hf_argparser.py:string_to_bool`).
    pub(super) fn flag(&self) -> Option<bool> {
        self.switched().or(match self.value.as_str() {
            "1" | "t" | "y" => Some(true),
            "0" | "f" | "n" => Some(false),
            _ => None,
        })
    }

    /// The same where a reader decides by it: a value that the text leaves open is none that it may take for off. Of keys in
    /// groups alone: those of trainers are asked for one by one.
    pub(super) fn decides(&self) -> Option<bool> {
        let said = self.flag();
        let open = said.is_none() && self.path.contains('.') && self.left_open().is_some();
        self.undecided.set(self.undecided.get() || open);
        said
    }

    /// The name of what its value depends on: a variable, or the placeholder of a template (`{{RECOMPUTE}}`).
    pub(super) fn left_open(&self) -> Option<&str> {
        const MARKS: [(&str, &str); 3] = [("{{", "}}"), ("${", "}"), ("<", ">")];
        let marked =
            MARKS.iter().find_map(|(open, close)| self.value.strip_prefix(open)?.strip_suffix(close));
        let is_name = |name: &&str| {
            name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        self.hole.as_deref().or(marked.map(str::trim).filter(is_name))
    }

    /// Its boolean value if it can be nothing else.
    pub(super) fn switched(&self) -> Option<bool> {
        scalar::flag(&self.value)
    }

    /// Its value for use in a sentence: empty for a switch, whose name is enough.
    pub(super) fn shown(&self) -> &str {
        if self.switched() == Some(true) { "" } else { &self.value }
    }
}

/// Keys without a dot that commands with dotted keys have: Megatron-Bridge's, and the top-level keys of verl's
/// supervised trainer (`verl/trainer/config/sft_trainer.yaml`).
const AT_THE_TOP: [&str; 4] =
    ["mixed_precision", "ulysses_sequence_parallel_size", "use_remove_padding", "engine"];

/// A value without the quotes that bash left on it (`model.path='"a/b"'`), as Hydra's override grammar reads it.
fn unquoted(value: &str) -> &str {
    let within =
        |quote: char| value.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

/// Whether a word consists of keys joined by dots, or is one of the keys without a dot.
pub(super) fn is_path(word: &str) -> bool {
    let name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'@'))
    };
    (word.contains('.') || AT_THE_TOP.contains(&word)) && word.split('.').all(name)
}

fn same_path(left: &str, right: &str) -> bool {
    let fold = |byte: u8| if byte == b'-' { b'_' } else { byte };
    left.len() == right.len() && left.bytes().zip(right.bytes()).all(|(a, b)| fold(a) == fold(b))
}

/// A list as `[a,b,[c]]`.
fn listed(node: &Node) -> String {
    fn write(node: &Node, out: &mut String) {
        match &node.value {
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().take(LONGEST_LIST).enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write(item, out);
                }
                out.push(']');
            }
            _ => out.push_str(node.text().unwrap_or("")),
        }
    }
    let mut out = String::new();
    write(node, &mut out);
    out
}
