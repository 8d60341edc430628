//! A settings file as a list of its scalars, each under the keys that lead to it; what a reader takes
//! from it, and what it leaves aside.

use std::cell::Cell;

use super::interpolate::expand;
use crate::intake::tree::{Node, Value, scalar};
use crate::intake::{Argument, Found, Origin, Reading};
use crate::plan::{Field, Kind};
use crate::text::{Diagnostic, Span};

/// Keys listed by name in one note at most.
const LISTED: usize = 12;
const BEYOND: usize = LISTED + 1;
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

/// The scalars of a settings file.
#[derive(Debug, Default)]
pub(super) struct Scalars(Vec<Leaf>);

/// What has been taken from the scalars of a settings file.
#[derive(Debug)]
pub(super) struct Leaves<'t> {
    leaves: &'t [Leaf],
    pub(super) reading: Reading,
}

impl Scalars {
    /// Those under a node.
    pub(super) fn of(node: &Node) -> Self {
        let mut scalars = Self::default();
        scalars.collect(node, &mut String::new());
        scalars.expand_all();
        scalars
    }

    /// Those of the words `a.b=value`, as Hydra takes them (`+`, `++` in front), or `--a.b value`.
    pub(super) fn of_words(words: &[Argument]) -> Self {
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
                (Some((path, value)), _) => (path, value, place(path.len() + 1), &word.hole),
                _ if !word.text.starts_with("--") => continue,
                (None, Some(value)) => (text, value.text.as_str(), value.span, &value.hole),
                (None, None) => (text, "true", place(0), &None),
            };
            if is_path(path) {
                scalars.push(path, value, span, hole.clone());
            }
        }
        scalars.expand_all();
        scalars
    }

    /// Adds the scalars of another text, which win over those already there.
    pub(super) fn extend(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    /// All of them.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Leaf> {
        self.0.iter()
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

    fn push(&mut self, path: &str, value: &str, span: Option<Span>, hole: Option<String>) {
        if self.0.len() == MAX_LEAVES {
            return;
        }
        let value = if matches!(value, "null" | "None" | "~") { "" } else { value };
        self.0.push(Leaf {
            path: path.to_owned(),
            value: value.to_owned(),
            span,
            hole,
            used: Cell::new(false),
        });
    }

    fn expand_all(&mut self) {
        let lookups = Cell::new(0);
        for index in 0..self.0.len() {
            let leaf = &self.0[index];
            if !leaf.value.starts_with("${") {
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
                Err(name) => leaf.hole = Some(name),
            }
        }
    }
}

/// The last leaf of that path; `-` and `_` count as one letter.
#[inline(never)]
fn find<'t>(leaves: &'t [Leaf], path: &str) -> Option<&'t Leaf> {
    leaves.iter().rfind(|leaf| same_path(&leaf.path, path))
}

impl<'t> Leaves<'t> {
    /// Over these scalars, nothing taken.
    #[inline(never)]
    pub(super) fn over(scalars: &'t Scalars) -> Self {
        Self { leaves: &scalars.0, reading: Reading::default() }
    }

    /// All of them.
    pub(super) fn all(&self) -> &'t [Leaf] {
        self.leaves
    }

    /// The last leaf of that path, if it holds something.
    #[inline(never)]
    pub(super) fn get(&self, path: &str) -> Option<&'t Leaf> {
        let leaf = find(self.leaves, path)?;
        leaf.used.set(true);
        if leaf.value.is_empty() { None } else { Some(leaf) }
    }

    /// The same, if it says yes.
    #[inline(never)]
    pub(super) fn yes(&self, path: &str) -> Option<&'t Leaf> {
        self.get(path).filter(|leaf| leaf.flag() == Some(true))
    }

    /// The first of several paths that holds something.
    #[inline(never)]
    pub(super) fn first(&self, paths: &[&str]) -> Option<&'t Leaf> {
        paths.iter().find_map(|path| self.get(path))
    }

    /// Whether a path is there, even if it holds nothing.
    pub(super) fn has(&self, path: &str) -> bool {
        find(self.leaves, path).is_some()
    }

    /// The text of a path.
    pub(super) fn text(&self, path: &str) -> Option<&'t str> {
        self.get(path).map(|leaf| leaf.value.as_str())
    }

    /// The whole number of a path.
    #[inline(never)]
    pub(super) fn whole(&self, path: &str) -> Option<u64> {
        self.get(path).and_then(|leaf| leaf.whole())
    }

    /// Yes or no under a path.
    #[inline(never)]
    pub(super) fn flag(&self, path: &str) -> Option<bool> {
        self.get(path).and_then(|leaf| leaf.flag())
    }

    /// Takes the value under the first of these paths that holds one.
    #[inline(never)]
    pub(super) fn take(&mut self, paths: &[&str], field: Field) -> bool {
        let Some(leaf) = self.first(paths) else { return false };
        let value = match field.kind() {
            // Numbers in the spellings of every format.
            Kind::Count(..) => leaf.whole().map(|whole| whole.to_string()),
            Kind::Flag => leaf.flag().map(|flag| flag.to_string()),
            _ => None,
        };
        self.say(field, value.as_deref().unwrap_or(&leaf.value), leaf);
        true
    }

    /// Takes each of these paths that holds something.
    pub(super) fn take_all(&mut self, rules: &[(&str, Field)]) {
        for (path, field) in rules {
            self.take(&[path], *field);
        }
    }

    /// States a value that follows from a leaf.
    #[inline(never)]
    pub(super) fn say(&mut self, field: Field, value: &str, leaf: &Leaf) {
        let mut found = Found::new(field, value, Origin::Script).by(leaf.path.clone(), leaf.span);
        found.hole = leaf.hole.clone().or_else(|| placeholder(field, &found.value));
        self.reading.take(found);
    }

    /// The same with a remark.
    #[inline(never)]
    pub(super) fn say_noted(&mut self, field: Field, value: &str, leaf: &Leaf, note: &str) {
        self.say(field, value, leaf);
        if let Some(found) = self.reading.found.iter_mut().find(|found| found.field == field) {
            found.note = Some(note.to_owned());
        }
    }

    /// Turns a setting on or off as a leaf says.
    #[inline(never)]
    pub(super) fn switch(&mut self, field: Field, on: bool, leaf: &Leaf) {
        self.say(field, if on { "true" } else { "false" }, leaf);
    }

    /// States what follows from the whole, unless it is stated already.
    #[inline(never)]
    pub(super) fn state(&mut self, field: Field, value: &str, origin: Origin, note: &str) {
        if !self.reading.found.iter().any(|found| found.field == field) {
            self.reading.take(Found::new(field, value, origin).note(note));
        }
    }

    /// States several such values.
    #[inline(never)]
    pub(super) fn state_all(&mut self, values: &[(Field, &str)], origin: Origin, note: &str) {
        for (field, value) in values {
            self.state(*field, value, origin, note);
        }
    }

    /// Says that a key does something that is not estimated.
    #[inline(never)]
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
        let (mut count, mut names, mut place) = (0, String::new(), None);
        for leaf in self.leaves {
            if leaf.used.get() || leaf.value.is_empty() {
                continue;
            }
            count += 1;
            if count == 1 {
                place = leaf.span;
            } else if count <= LISTED {
                names += ", ";
            }
            names += match count {
                ..=LISTED => &leaf.path,
                BEYOND => ", …",
                _ => "",
            };
        }
        if count > 0 {
            let message =
                format!("read as {format}; {count} of its keys change none of the figures: {names}");
            self.reading.diagnostics.push(Diagnostic::note("keys-left-aside", message).at_some(place));
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
        reading.keep(&|found| !gone.contains(&found.field));
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
    let mut inner = value;
    while let Some(b'$' | b'{' | b'<' | b' ' | b'%') = inner.as_bytes().first() {
        inner = inner.get(1..).unwrap_or_default();
    }
    while let Some(b'}' | b'>' | b' ' | b'%') = inner.as_bytes().last() {
        inner = inner.get(..inner.len() - 1).unwrap_or_default();
    }
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
