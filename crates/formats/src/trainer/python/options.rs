//! Options that a program takes from its command line: fields of its argument classes, set by
//! that line or by their defaults.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use super::super::words;
use super::argparse::{declared, decorated, fired};
use super::calls::PARSERS;
use super::literal::{call_end, literal, plain};
use super::names::{Names, is_of_name};
use crate::Argument;
use crate::scalars::Leaf;
use shardscope_python::statements::{statement_end, string_end};
use shardscope_source::Span;

/// Most fields, and most classes, that are read from one program.
const MOST: usize = 256;
/// Most variables that are looked up; each takes a pass over the text.
const LOOKED_FOR: usize = 48;
/// Fields of transformers' `TrainingArguments` that programs use in conditions, with their defaults
/// (`src/transformers/training_args.py`, the same in releases 4 and 5).
const INHERITED: [(&str, &str); 6] = [
    ("fp16", "false"),
    ("bf16", "false"),
    ("gradient_checkpointing", "false"),
    ("deepspeed", ""),
    ("torch_compile", "false"),
    ("use_liger_kernel", "false"),
];

/// Classes of transformers that have those fields.
const ARGUMENTS: [&str; 2] = ["TrainingArguments", "Seq2SeqTrainingArguments"];

/// One field of an argument class.
struct Field<'a> {
    name: Cow<'a, str>,
    /// Its default in a settings file's notation; `None` if it is computed, or if there is none.
    default: Option<String>,
    span: Span,
    /// Whether it is one of argparse's.
    declared: bool,
}

/// The options of a program.
#[derive(Default)]
pub(super) struct Options<'a> {
    text: &'a str,
    /// Variables looked up, each with what it is set to.
    looked: RefCell<HashMap<String, Option<&'a str>>>,
    fields: Vec<Field<'a>>,
    /// Options given on the line.
    given: Vec<Leaf>,
    /// Whether one of the classes is transformers' `TrainingArguments`, or derived from it.
    inherits: bool,
    /// Whether the parameters of a function are the options (`fire.Fire`, `@click.option`).
    parameters: bool,
}

impl<'a> Options<'a> {
    /// The options of the classes in `named`, the words of a parser call, together with the words
    /// of the program's command line.
    pub(super) fn new(text: &'a str, base: u32, named: &str, names: &Names<'_>, line: &[Argument]) -> Self {
        let mut options = Self {
            text,
            looked: RefCell::default(),
            fields: Vec::new(),
            given: words::leaves(line).all().to_vec(),
            inherits: false,
            parameters: false,
        };
        let is_named = |class: &str| named.split(|sign: char| !is_of_name(sign)).any(|word| word == class);
        let (mut at, mut classes) = (0, 0);
        let mut inside = false;
        while let Some(line) = text.get(at..).and_then(|rest| rest.split_inclusive('\n').next()) {
            let next = at + line.len();
            let first = line.bytes().next().unwrap_or(b'\n');
            if let Some(head) = line.strip_prefix("class ").filter(|_| classes < MOST) {
                classes += 1;
                inside = is_named(head.split(|sign| !is_of_name(sign)).next().unwrap_or_default());
                let bases = head.split_once('(').map_or("", |(_, bases)| bases);
                options.inherits |= inside && ARGUMENTS.iter().any(|class| bases.contains(class));
            } else if !first.is_ascii_whitespace() && !matches!(first, b')' | b'#') {
                inside = false;
            }
            at = next;
            if !inside || options.fields.len() == MOST {
                continue;
            }
            let Some((name, kind)) = line.split_once(':') else { continue };
            let Some((_, value)) = kind.split_once('=').filter(|_| name.trim().chars().all(is_of_name))
            else {
                continue;
            };
            let from = next - value.len();
            let end = statement_end(text, from);
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(base);
            let start = next - line.len() + line.len() - line.trim_start().len();
            options.fields.push(Field {
                name: Cow::Borrowed(name.trim()),
                default: default(text.get(from..end).unwrap_or_default().trim()),
                span: Span::new(place(start), place(end)),
                declared: false,
            });
            at = end.max(next);
        }
        options.inherits |= ARGUMENTS.iter().any(|class| is_named(class));
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(base);
        let mut fired = fired(text);
        fired.extend(decorated(text, names));
        options.parameters = !fired.is_empty();
        for option in declared(text, names).into_iter().chain(fired) {
            let name = Cow::Owned(option.name);
            let span = Span::new(place(option.place.0), place(option.place.1));
            options.fields.push(Field { name, default: option.default, span, declared: true });
        }
        options
    }

    /// The option that an expression refers to, `args.name` or a variable assigned from it, if its value
    /// is on a line that is not known.
    pub(super) fn named(&self, written: &str) -> Option<&str> {
        if self.is_parameter(written) && self.given.is_empty() {
            return self
                .fields
                .iter()
                .find(|field| field.declared && field.name == written)
                .map(|field| &*field.name);
        }
        let path = if written.chars().all(is_of_name) { self.handed(written)? } else { written };
        let (owner, name) = path.rsplit_once('.')?;
        let declared = self.fields.iter().find(|field| field.declared && field.name == name)?;
        (self.given.is_empty() && owner.ends_with("args") && owner.chars().all(is_of_name))
            .then_some(&declared.name)
    }

    /// The keys given on the line, followed by those of fields that it leaves at their defaults.
    pub(super) fn leaves(&self, wanted: impl Fn(&Leaf) -> bool) -> Vec<Leaf> {
        let mut leaves = self.given.clone();
        for field in self.fields.iter().filter(|field| self.is_silent(&field.name)) {
            let Some(value) = field.default.as_deref().filter(|value| !value.is_empty()) else { continue };
            let (path, value) = (field.name.clone().into_owned(), value.to_owned());
            let leaf = Leaf { path, value, span: Some(field.span), ..Leaf::default() };
            leaves.extend(wanted(&leaf).then_some(leaf));
        }
        leaves
    }

    fn is_silent(&self, name: &str) -> bool {
        self.given.iter().all(|leaf| leaf.path != name)
    }

    /// The value of the option of this name; `None` if it is not known.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        // Without the line no option is known.
        if self.given.is_empty() {
            return None;
        }
        if let Some(leaf) = self.given.iter().find(|leaf| leaf.path == name) {
            return Some(leaf.value.as_str()).filter(|_| leaf.hole.is_none());
        }
        let inherited =
            || INHERITED.iter().find(|(known, _)| self.inherits && *known == name).map(|(_, value)| *value);
        self.unless_given(name).or_else(inherited)
    }

    /// Records that a call's keyword is set directly to an option of the line: its meaning is
    /// then known, whatever its name.
    pub(super) fn hand_over(&self, written: &str) {
        let name = written.rsplit('.').next().unwrap_or(written);
        if let Some(leaf) = self.given.iter().find(|leaf| leaf.path == name) {
            leaf.used.set(true);
        }
    }

    /// Whether a name is itself an option: those of `fire.Fire(train)` and of click are parameters.
    pub(super) fn is_parameter(&self, name: &str) -> bool {
        self.parameters && self.fields.iter().any(|field| field.declared && field.name == name)
    }

    /// The default of an option.
    pub(super) fn unless_given(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.name == name)?.default.as_deref()
    }

    /// The dotted name that a variable or a parameter of that name is set to:
    /// `rank = lora_args.lora_r`, `f(rank=lora_args.lora_r)`.
    pub(super) fn handed(&self, name: &str) -> Option<&'a str> {
        let known = self.looked.borrow().get(name).copied();
        if name.is_empty() || known.is_none() && self.looked.borrow().len() == LOOKED_FOR {
            return None;
        }
        known.unwrap_or_else(|| {
            let found = self.set_to(name);
            self.looked.borrow_mut().insert(name.to_owned(), found);
            found
        })
    }

    fn set_to(&self, name: &str) -> Option<&'a str> {
        /// Longest chain of names that is followed.
        const LOOKED_AT: usize = 64;
        let (mut one, mut handed) = (None, None);
        for (at, _) in self.text.match_indices(name).take(LOOKED_AT) {
            let before = self.text.get(..at).and_then(|before| before.chars().next_back());
            let rest = self.text.get(at + name.len()..).unwrap_or_default().trim_start_matches(' ');
            let Some(value) = rest.strip_prefix('=').filter(|value| !value.starts_with('=')) else {
                continue;
            };
            if before.is_some_and(|sign| is_of_name(sign) || sign == '.') {
                continue;
            }
            let value = value.trim_start_matches(' ');
            let end = value.find(|sign| !is_of_name(sign) && sign != '.').unwrap_or(value.len());
            let path = value.get(..end).unwrap_or_default();
            let path = path.strip_suffix(".split").unwrap_or(path);
            // Passed on under its own name, or split at its commas.
            if path == name {
                continue;
            }
            // The argument of a parameter applies within its function, whatever else has that name.
            let place = if value.get(end..).is_some_and(|rest| rest.starts_with([',', ')'])) {
                &mut handed
            } else {
                &mut one
            };
            if place.is_some_and(|known| known != path) {
                return None;
            }
            *place = Some(path);
        }
        let options = |path: &&str| path.contains('.');
        handed.filter(options).or(one.filter(options))
    }
}

/// The words in parser calls, which name the classes that they fill.
pub(super) fn parsed(text: &str) -> String {
    /// Calls that are read, and bytes of each.
    const CALLS: usize = 4;
    const LONGEST: usize = 1_000;
    let mut words = String::new();
    for name in PARSERS {
        let calls = text.match_indices(name).map(|(at, _)| at + name.len());
        for open in calls.filter(|open| text.as_bytes().get(*open) == Some(&b'(')).take(CALLS) {
            let end = call_end(text, open).min(open + LONGEST);
            words.push_str(text.get(open..end).unwrap_or_default());
        }
    }
    words
}

/// The default in a field's statement: `= 8`, `= field(default=8, …)`, `= field(default_factory=lambda: ["q_proj"])`.
fn default(value: &str) -> Option<String> {
    let value = value.split(" #").next().unwrap_or(value).trim();
    let Some(inner) = value.strip_prefix("field(") else { return computed(value) };
    let from = inner.find("default=").map(|at| at + "default=".len());
    let from = from.or_else(|| inner.find("default_factory=").map(|at| at + "default_factory=".len()))?;
    let rest = inner.get(from..)?.trim_start();
    let rest = rest.strip_prefix("lambda:").unwrap_or(rest).trim_start();
    let bytes = rest.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            b',' | b')' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    computed(rest.get(..at)?.trim())
}

/// A literal, or a product of whole numbers.
fn computed(value: &str) -> Option<String> {
    let factors = || value.split('*').map(|factor| factor.trim().parse::<u64>().ok());
    if value.contains('*') && factors().all(|factor| factor.is_some()) {
        return factors().flatten().try_fold(1, u64::checked_mul).map(|product| product.to_string());
    }
    literal(value.strip_prefix('r').filter(|rest| rest.starts_with(['"', '\''])).unwrap_or(value)).map(plain)
}
