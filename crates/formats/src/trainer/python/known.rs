//! The values of a program's names as far as they are known: options from its command line or their defaults, variables
//! by the assignments that run, fields of classes that it creates without arguments.

use super::called::Called;
use super::flow::{Flow, Given};
use super::options::Options;
use shardscope_python::syntax::{Node, node};
use shardscope_python::value::{Names, Value, truth, value};
use std::cell::Cell;

/// Most names that are looked up in one program, and longest chain of names.
const LOOKED_FOR: usize = 4_000;
const DEEPEST: u32 = 8;
/// Most keys of a dictionary that are followed.
const MOST_KEYS: usize = 64;
/// Bytes of an expression that are read.
const LONGEST: usize = 4_000;

/// A program's options and statements.
#[derive(Default)]
pub(super) struct Known<'a> {
    pub(super) options: Options<'a>,
    pub(super) flow: Flow<'a>,
    looked: Cell<usize>,
    depth: Cell<u32>,
}

/// The same, seen from one statement.
struct From<'k, 'a> {
    known: &'k Known<'a>,
    at: u32,
}

impl Names for From<'_, '_> {
    fn value(&self, name: &str) -> Option<Value> {
        self.known.name(name, self.at)
    }

    fn call(&self, name: &str) -> Option<Value> {
        let lists = lists_linear_layers(self.known.flow.function(name));
        lists.then(|| Value::Text(ALL_LINEAR.to_owned()))
    }
}

/// Functions that give a class's fields their defaults.
const FIELDS: [&str; 2] = ["field", "Field"];

/// The value that stands for the names of all linear layers except the output layer.
const ALL_LINEAR: &str = "all";

/// Whether a function returns the names of all linear layers except the output layer (`qlora.py:find_all_linear_names`
/// and functions modelled on it): it iterates over the modules, collects the names of linear ones, and omits `lm_head`,
/// which bitsandbytes does not quantize.
fn lists_linear_layers<'a>(body: impl Iterator<Item = &'a str>) -> bool {
    /// Most statements of such a function.
    const LONGEST: usize = 40;
    /// Words in functions that omit more, or include more.
    const OTHERS: [&str; 5] = ["Embedding", "exclude", "vision", "mm_", "conv"];
    let statements: Vec<&str> = body.take(LONGEST + 1).collect();
    let has = |word: &str| statements.iter().any(|statement| statement.contains(word));
    let without_output =
        has("'lm_head'") || has("\"lm_head\"") || has("bnb.nn.Linear") && !has("torch.nn.Linear");
    statements.len() <= LONGEST
        && has(".named_modules()")
        && has("isinstance(")
        && without_output
        && !OTHERS.iter().any(|word| has(word))
}

/// A dictionary whose values of some keys are not known; none if it is something else.
fn without(value: Value, open: &[&str]) -> Option<Value> {
    match value {
        _ if open.is_empty() => Some(value),
        Value::Dictionary(mut pairs) => {
            pairs.retain(|(known, _)| !open.contains(&known.as_str()));
            pairs.extend(open.iter().map(|key| ((*key).to_owned(), None)));
            Some(Value::Dictionary(pairs))
        }
        _ => None,
    }
}

impl<'a> Known<'a> {
    pub(super) fn new(text: &'a str, options: Options<'a>) -> Self {
        Self { options, flow: Flow::new(text), ..Self::default() }
    }

    /// The value of an expression at a position, in a settings file's notation; `None` if it is not known.
    pub(super) fn value(&self, written: &str, at: usize) -> Option<String> {
        self.object(written, at)?.setting()
    }

    /// The same as a `Value`.
    pub(super) fn object(&self, written: &str, at: usize) -> Option<Value> {
        let at = self.flow.step(at).unwrap_or_default();
        self.worked_out(written, at)
    }

    /// The argument for a keyword of the call at a position, with an inner `None` if its value is not known; `None`
    /// if the call has no such keyword.
    pub(super) fn keyword(&self, call: &str, at: usize, key: &str) -> Option<Option<Value>> {
        let Node::Call(_, arguments) = node(call.get(..call.len().min(LONGEST))?) else { return None };
        let (_, given) = arguments.into_iter().find(|(keyword, _)| keyword.as_deref() == Some(key))?;
        Some(value(&given, &From { known: self, at: self.flow.step(at).unwrap_or_default() }))
    }

    fn worked_out(&self, written: &str, at: u32) -> Option<Value> {
        if written.len() > LONGEST {
            return None;
        }
        value(&node(written), &From { known: self, at })
    }

    fn holds(&self, condition: &str, at: u32) -> Option<bool> {
        if condition.is_empty() || condition.len() > LONGEST {
            return None;
        }
        truth(&node(condition), &From { known: self, at })
    }

    /// Whether the code at `at` runs: depends on the branches around it within its function, and on an `if` after the
    /// parenthesis that closes at `end`. `None` if a condition is undecided.
    pub(super) fn runs(&self, text: &str, at: usize, end: usize) -> Option<bool> {
        let step = self.flow.step(at).unwrap_or_default();
        let around = self.flow.runs(step, None, &|condition, at| self.holds(condition, at));
        // A conditional expression; a statement after it would end with a colon.
        let behind = text.get(end..).unwrap_or_default().trim_start();
        let choice = behind.strip_prefix("if ").and_then(|rest| rest.split(':').next()?.split_once("else"));
        let chosen = choice.map_or(Some(true), |(condition, _)| self.holds(condition.trim(), step));
        match (around, chosen) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (around, chosen) => around.zip(chosen).map(|_| true),
        }
    }

    /// The same for whichever of two positions in different branches of one `if` runs; `None` if they are not.
    pub(super) fn one_runs(&self, first: usize, second: usize) -> Option<bool> {
        let head = self.flow.parted(self.flow.step(first)?, self.flow.step(second)?)?;
        self.flow.runs(head, None, &|condition, at| self.holds(condition, at))
    }

    /// Whether two positions are in different branches of one `if`.
    pub(super) fn parted(&self, first: usize, second: usize) -> bool {
        let steps = self.flow.step(first).zip(self.flow.step(second));
        steps.is_some_and(|(first, second)| self.flow.parted(first, second).is_some())
    }

    /// Whether the program assigns a name on the way to a position, whether or not the value is known.
    pub(super) fn is_given(&self, name: &str, at: usize) -> bool {
        self.flow.step(at).is_some_and(|step| !self.flow.given(name, step).is_empty())
    }

    fn name(&self, name: &str, at: u32) -> Option<Value> {
        self.looked.set(self.looked.get() + 1);
        if self.looked.get() > LOOKED_FOR || self.depth.get() == DEEPEST {
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let found = self.found(name, at);
        self.depth.set(self.depth.get() - 1);
        found
    }

    fn found(&self, name: &str, at: u32) -> Option<Value> {
        let given = self.flow.given(name, at);
        if !given.is_empty() {
            return self.last(name, &given, at);
        }
        let Some((owner, field)) = name.rsplit_once('.') else {
            if self.options.is_parameter(name) {
                return self.options.option(name).map(Value::from_setting);
            }
            return self.handed(name, at).or_else(|| self.parameter(name, at));
        };
        if owner.ends_with("args") {
            return self.options.option(field).map(Value::from_setting);
        }
        self.field(owner, field, at)
    }

    /// The argument for a parameter in the program's own calls of its function.
    fn parameter(&self, name: &str, at: u32) -> Option<Value> {
        let called = Called::around(&self.flow, name, at)?;
        let runs = |step| self.flow.runs(step, None, &|condition, at| self.holds(condition, at));
        called.agreed(&self.flow, &runs, &|given, at| value(given, &From { known: self, at }))
    }

    /// The argument for a parameter, if it is an option.
    fn handed(&self, name: &str, at: u32) -> Option<Value> {
        let path = self.options.handed(name)?;
        self.worked_out(path, at)
    }

    /// The value on which all assignments that may run agree, going back to the last one that does run; of a dictionary,
    /// keys that may have been set since are not known.
    fn last(&self, name: &str, given: &[(u32, Given<'a>)], at: u32) -> Option<Value> {
        let mut agreed: Option<Value> = None;
        let mut open: Vec<&str> = Vec::new();
        for (step, given) in given {
            let runs = self.flow.runs(*step, Some(at), &|condition, at| self.holds(condition, at));
            if runs == Some(false) {
                continue;
            }
            let found = match given {
                Given::Open => None,
                Given::Value(written) => self.worked_out(written, *step),
                Given::Item(key, _) if runs.is_none() && open.len() < MOST_KEYS => {
                    open.push(key);
                    continue;
                }
                Given::Item(key, written) => match self.name(name, *step) {
                    Some(Value::Dictionary(mut pairs)) if pairs.len() < MOST_KEYS => {
                        pairs.retain(|(known, _)| known != key);
                        pairs.push(((*key).to_owned(), self.worked_out(written, *step)));
                        Some(Value::Dictionary(pairs))
                    }
                    _ => None,
                },
                Given::Changed(sign, by) => {
                    let before = self.name(name, *step)?.setting()?;
                    self.worked_out(&format!("{before} {sign} ({by})"), *step)
                }
            }?;
            let found = without(found, &open)?;
            if agreed.as_ref().is_some_and(|agreed| *agreed != found) {
                return None;
            }
            agreed = Some(found);
            if runs == Some(true) {
                return agreed;
            }
        }
        // It is not known whether any of them ran.
        None
    }

    /// A field of an object of one of the program's classes, from the constructor call or its default.
    fn field(&self, owner: &str, field: &str, at: u32) -> Option<Value> {
        let (step, given) = self.flow.given(owner, at).into_iter().next()?;
        let Given::Value(written) = given else { return None };
        if written.len() > LONGEST
            || self.flow.runs(step, Some(at), &|condition, at| self.holds(condition, at)) != Some(true)
        {
            return None;
        }
        let Node::Call(class, arguments) = node(written) else { return None };
        let class = class.dotted()?;
        if arguments.iter().any(|(keyword, _)| keyword.is_none()) {
            return None;
        }
        let from = From { known: self, at: step };
        if let Some((_, given)) = arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some(field)) {
            return value(given, &from);
        }
        let Given::Value(default) = self.flow.field(&class, field)? else { return None };
        match node(default) {
            Node::Call(called, arguments) if matches!(&*called, Node::Name(name) if FIELDS.contains(&name.as_str())) =>
            {
                let default = arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some("default"));
                value(&default?.1, &from)
            }
            default => value(&default, &from),
        }
    }
}

#[cfg(test)]
mod tests;
