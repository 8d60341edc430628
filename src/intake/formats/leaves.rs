//! A settings file as a list of its scalars, each under the keys that lead to it; what a reader takes
//! from it, and what it leaves aside.

use std::cell::Cell;
use std::rc::Rc;

use super::interpolate::expand;
use crate::intake::tree::{Node, Value, scalar};
use crate::intake::{Argument, Found, Origin, Reading};
use crate::plan::{Field, Kind};
use crate::text::{Diagnostic, Span};

/// Keys listed by name in one note at most.
const LISTED: usize = 12;
/// Longest list written out as one value; real ones name at most every layer.
const LONGEST_LIST: usize = 4096;

/// Most scalars kept of one text; real ones have a few hundred.
const MAX_LEAVES: usize = 20_000;
/// Most references followed in one text.
const MAX_LOOKUPS: u32 = 2_000;

/// One scalar, or list of scalars, of a settings file.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// Its keys, joined by dots.
    pub(super) path: String,
    /// Its text; a list as `[a,b]`; empty when it holds nothing.
    pub(super) value: String,
    /// Where the value stands; nothing for a word without a place.
    pub(super) span: Option<Span>,
    /// The variable that the value lacks, when it is not known.
    pub(super) hole: Option<String>,
    used: Cell<bool>,
}

/// The scalars of a settings file, and what has been taken from them.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    leaves: Vec<Rc<Leaf>>,
    pub(super) reading: Reading,
}

impl Leaves {
    /// Those under a node.
    pub(super) fn of(node: &Node) -> Self {
        let mut leaves = Self::default();
        leaves.collect(node, &mut String::new());
        leaves.expand_all();
        leaves
    }

    /// Those of the words `a.b=value`, as Hydra takes them (`+`, `++` in front), or `--a.b value`.
    pub(super) fn of_words(words: &[Argument]) -> Self {
        let mut leaves = Self::default();
        for (index, word) in words.iter().enumerate() {
            let text = word.text.trim_start_matches(['-', '+']);
            let next = words.get(index + 1).filter(|next| !next.text.starts_with("--"));
            let place = |from: usize| {
                let from = u32::try_from(word.text.len() - text.len() + from).unwrap_or(0);
                let exact = |span: &Span| span.len() as usize == word.text.len();
                word.span.filter(exact).map(|span| span.part(from, span.len())).or(word.span)
            };
            let leaf = match (text.split_once('='), next) {
                (Some((path, value)), _) if is_path(path) => {
                    leaf(path, value, place(path.len() + 1), word.hole.clone())
                }
                (None, Some(value)) if word.text.starts_with("--") && is_path(text) => {
                    leaf(text, &value.text, value.span, value.hole.clone())
                }
                (None, None) if word.text.starts_with("--") && is_path(text) => {
                    leaf(text, "true", place(0), None)
                }
                _ => continue,
            };
            leaves.leaves.push(Rc::new(leaf));
        }
        leaves.expand_all();
        leaves
    }

    /// Adds the scalars of another text, which win over those already there.
    pub(super) fn extend(&mut self, later: Self) {
        self.leaves.extend(later.leaves);
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Leaf> {
        self.leaves.iter().map(Rc::as_ref)
    }

    fn collect(&mut self, node: &Node, path: &mut String) {
        let list = !node.items().is_empty() && node.items().iter().all(|item| item.entries().is_empty());
        match &node.value {
            Value::Scalar(_) => self.push(path, node.word().unwrap_or(""), node.span),
            Value::List(items) if list || items.is_empty() => self.push(path, &listed(node), node.span),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(item, &index.to_string(), path);
                }
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

    fn push(&mut self, path: &str, value: &str, span: Span) {
        if self.leaves.len() == MAX_LEAVES {
            return;
        }
        self.leaves.push(Rc::new(leaf(path, value, Some(span), None)));
    }

    fn expand_all(&mut self) {
        let lookups = Cell::new(0);
        for index in 0..self.leaves.len() {
            let Some(leaf) = self.leaves.get(index).filter(|leaf| leaf.value.starts_with("${")) else {
                continue;
            };
            let look = |path: &str| {
                lookups.set(lookups.get() + 1);
                let at = if lookups.get() > MAX_LOOKUPS { None } else { self.find(path) };
                at.and_then(|at| self.leaves.get(at)).map(|leaf| leaf.value.clone())
            };
            let expanded = expand(&leaf.value, &leaf.path, &look);
            let leaf = Rc::make_mut(&mut self.leaves[index]);
            match expanded {
                Ok(value) => leaf.value = value,
                Err(name) => leaf.hole = Some(name),
            }
        }
    }

    fn find(&self, path: &str) -> Option<usize> {
        self.leaves.iter().rposition(|leaf| same_path(&leaf.path, path))
    }

    /// The last leaf of that path, if it holds something; `-` and `_` count as one letter.
    pub(super) fn get(&self, path: &str) -> Option<Rc<Leaf>> {
        let leaf = self.find(path).and_then(|at| self.leaves.get(at))?;
        leaf.used.set(true);
        (!leaf.value.is_empty()).then(|| leaf.clone())
    }

    /// The first of several paths that holds something.
    pub(super) fn first(&self, paths: &[&str]) -> Option<Rc<Leaf>> {
        paths.iter().find_map(|path| self.get(path))
    }

    /// Whether a path is there, even if it holds nothing.
    pub(super) fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// The text of a path.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.get(path).map(|leaf| leaf.value.clone())
    }

    /// The whole number of a path.
    pub(super) fn whole(&self, path: &str) -> Option<u64> {
        self.get(path).and_then(|leaf| leaf.whole())
    }

    /// Yes or no under a path.
    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        self.get(path).and_then(|leaf| leaf.flag())
    }

    /// Takes the value under the first of these paths that holds one.
    pub(super) fn take(&mut self, paths: &[&str], field: Field) -> bool {
        let Some(leaf) = self.first(paths) else { return false };
        let value = match field.kind() {
            // Numbers in the spellings of every format.
            Kind::Count(..) => leaf.whole().map(|whole| whole.to_string()),
            Kind::Flag => leaf.flag().map(|flag| flag.to_string()),
            _ => None,
        };
        self.say(field, value.as_deref().unwrap_or(&leaf.value), &leaf);
        true
    }

    /// Takes each of these paths that holds something.
    pub(super) fn take_all(&mut self, rules: &[(&str, Field)]) {
        for (path, field) in rules {
            self.take(&[path], *field);
        }
    }

    /// States a value that follows from a leaf.
    pub(super) fn say(&mut self, field: Field, value: &str, leaf: &Leaf) {
        let mut found = Found::new(field, value, Origin::Script).by(leaf.path.clone(), leaf.span);
        found.hole = leaf.hole.clone().or_else(|| placeholder(field, &found.value));
        self.reading.take(found);
    }

    /// The same with a remark.
    pub(super) fn say_noted(&mut self, field: Field, value: &str, leaf: &Leaf, note: &str) {
        self.say(field, value, leaf);
        if let Some(found) = self.reading.found.iter_mut().find(|found| found.field == field) {
            found.note = Some(note.to_owned());
        }
    }

    /// Turns a setting on or off as a leaf says.
    pub(super) fn switch(&mut self, field: Field, on: bool, leaf: &Leaf) {
        self.say(field, if on { "true" } else { "false" }, leaf);
    }

    /// States what follows from the whole, unless it is stated already.
    pub(super) fn state(&mut self, field: Field, value: &str, origin: Origin, note: &str) {
        if !self.reading.found.iter().any(|found| found.field == field) {
            self.reading.take(Found::new(field, value, origin).note(note));
        }
    }

    /// States several such values.
    pub(super) fn state_all(&mut self, values: &[(Field, &str)], origin: Origin, note: &str) {
        for (field, value) in values {
            self.state(*field, value, origin, note);
        }
    }

    /// Says that a key does something that is not estimated.
    pub(super) fn not_estimated(&mut self, leaf: &Leaf, what: &str) {
        let message = format!("{}: {what}, which is not estimated yet", leaf.path);
        self.reading.diagnostics.push(Diagnostic::warning("not-estimated", message).at_some(leaf.span));
    }

    /// Marks a key as read.
    pub(super) fn pass(&self, path: &str) {
        self.get(path);
    }

    /// The reading, with a note on the keys that were left aside.
    pub(super) fn finish(mut self, format: &str) -> Reading {
        let left: Vec<&Rc<Leaf>> =
            self.leaves.iter().filter(|leaf| !leaf.used.get() && !leaf.value.is_empty()).collect();
        if let Some(first) = left.first() {
            let names: Vec<&str> = left.iter().take(LISTED).map(|leaf| leaf.path.as_str()).collect();
            let more = if left.len() > LISTED { ", …" } else { "" };
            let message = format!(
                "read as {format}; {} of its keys change none of the figures: {}{more}",
                left.len(),
                names.join(", ")
            );
            let note = Diagnostic::note("keys-left-aside", message).at_some(first.span);
            self.reading.diagnostics.push(note);
        }
        self.reading
    }
}

/// Recomputation of zero layers is none.
pub(super) fn no_layers_is_none(reading: &mut Reading) {
    if reading.value(Field::RecomputeNumLayers) == Some("0") {
        let gone = [Field::RecomputeNumLayers, Field::RecomputeMethod, Field::RecomputeGranularity];
        let place = reading.found.iter().find(|found| found.field == Field::RecomputeNumLayers);
        let note = Diagnostic::note("no-recomputation", "recomputation of 0 layers is none");
        let note = note.at_some(place.and_then(|found| found.span));
        reading.found.retain(|found| !gone.contains(&found.field));
        reading.diagnostics.push(note);
    }
}

impl Leaf {
    /// Its whole number, in any format's spelling.
    pub(super) fn whole(&self) -> Option<u64> {
        scalar::whole(&self.value)
    }

    /// Its yes or no.
    pub(super) fn flag(&self) -> Option<bool> {
        scalar::flag(&self.value)
    }
}

fn leaf(path: &str, value: &str, span: Option<Span>, hole: Option<String>) -> Leaf {
    let value = if matches!(value, "null" | "None" | "~") { "" } else { value };
    Leaf { path: path.to_owned(), value: value.to_owned(), span, hole, used: Cell::new(false) }
}

/// Whether a word is keys joined by dots (or Megatron-Bridge's one key without any).
pub(super) fn is_path(word: &str) -> bool {
    let name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'@'))
    };
    (word.contains('.') || word == "mixed_precision") && word.split('.').all(name)
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

/// The name of what a template leaves open, where a number or truth value should stand.
pub(super) fn placeholder(field: Field, value: &str) -> Option<String> {
    if !matches!(field.kind(), Kind::Count(..) | Kind::Real(..) | Kind::Flag) {
        return None;
    }
    let inner = value.trim_start_matches(['$', '{', '<', ' ', '%']).trim_end_matches(['}', '>', ' ', '%']);
    let marked = inner.len() < value.len() && !inner.is_empty();
    let shouted = inner.len() > 1
        && inner.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
        && inner.starts_with(|c: char| c.is_ascii_uppercase())
        && !matches!(inner, "TRUE" | "FALSE" | "NULL");
    match () {
        () if value == "???" => Some(field.name().to_owned()),
        () if marked || shouted => Some(inner.to_owned()),
        () => None,
    }
}
