//! What the names of a program stand for where it is known: options as its line or their defaults have them, variables by the
//! assignments that run, fields of classes that it makes without arguments.

use super::flow::{Flow, Given};
use super::options::Options;
use crate::formats::python::expression::{Expression, expression};
use crate::formats::python::value::{Names, Value, truth, value};
use std::cell::Cell;

/// Names that are looked for in one program, and names behind each other.
const LOOKED_FOR: usize = 4_000;
const DEEPEST: u32 = 8;
/// Bytes of an expression that is read.
const LONGEST: usize = 2_000;

/// A program's options and statements.
#[derive(Default)]
pub(super) struct Known<'a> {
    pub(super) options: Options<'a>,
    flow: Flow<'a>,
    looked: Cell<usize>,
    depth: Cell<u32>,
}

/// The same as seen from one statement.
struct From<'k, 'a> {
    known: &'k Known<'a>,
    at: u32,
}

impl Names for From<'_, '_> {
    fn value(&self, name: &str) -> Option<Value> {
        self.known.name(name, self.at)
    }
}

impl<'a> Known<'a> {
    pub(super) fn new(text: &'a str, options: Options<'a>) -> Self {
        Self { options, flow: Flow::new(text), ..Self::default() }
    }

    /// What an expression that stands at a place comes to, as a settings file would have it; none where that is not known.
    pub(super) fn value(&self, written: &str, at: usize) -> Option<String> {
        self.object(written, at)?.setting()
    }

    /// The same as a value.
    pub(super) fn object(&self, written: &str, at: usize) -> Option<Value> {
        let at = self.flow.step(at).unwrap_or_default();
        self.worked_out(written, at)
    }

    fn worked_out(&self, written: &str, at: u32) -> Option<Value> {
        if written.len() > LONGEST {
            return None;
        }
        value(&expression(written), &From { known: self, at })
    }

    fn holds(&self, condition: &str, at: u32) -> Option<bool> {
        if condition.is_empty() || condition.len() > LONGEST {
            return None;
        }
        truth(&expression(condition), &From { known: self, at })
    }

    /// Whether what stands at `at` runs: the branches around it within its function, and the `if` behind the parenthesis that closes at
    /// `end`. None where a condition is not decided.
    pub(super) fn runs(&self, text: &str, at: usize, end: usize) -> Option<bool> {
        let step = self.flow.step(at).unwrap_or_default();
        let around = self.flow.runs(step, None, &|condition, at| self.holds(condition, at));
        // A choice within the expression; a statement behind it ends with a colon.
        let behind = text.get(end..).unwrap_or_default().trim_start();
        let choice = behind.strip_prefix("if ").and_then(|rest| rest.split(':').next()?.split_once("else"));
        let chosen = choice.map_or(Some(true), |(condition, _)| self.holds(condition.trim(), step));
        match (around, chosen) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (around, chosen) => around.zip(chosen).map(|_| true),
        }
    }

    /// Whether the program gives a name something on the way to a place, known or not.
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
            return self.handed(name, at);
        };
        if owner.ends_with("args") {
            return self.options.option(field).map(Value::from_setting);
        }
        self.field(owner, field, at)
    }

    /// What a parameter is handed, where that is an option.
    fn handed(&self, name: &str, at: u32) -> Option<Value> {
        let path = self.options.handed(name)?;
        self.worked_out(path, at)
    }

    /// What the assignments that may run agree on, from the last that does.
    fn last(&self, name: &str, given: &[(u32, Given<'a>)], at: u32) -> Option<Value> {
        let mut agreed: Option<Value> = None;
        for (step, given) in given {
            let runs = self.flow.runs(*step, Some(at), &|condition, at| self.holds(condition, at));
            if runs == Some(false) {
                continue;
            }
            let found = match given {
                Given::Open => None,
                Given::Value(written) => self.worked_out(written, *step),
                Given::Changed(sign, by) => {
                    let before = self.name(name, *step)?.setting()?;
                    self.worked_out(&format!("{before} {sign} ({by})"), *step)
                }
            }?;
            if agreed.as_ref().is_some_and(|agreed| *agreed != found) {
                return None;
            }
            agreed = Some(found);
            if runs == Some(true) {
                return agreed;
            }
        }
        // Whether any of them ran is not known.
        None
    }

    /// A field of an object that is made of a class of the program's, by the call or by its default.
    fn field(&self, owner: &str, field: &str, at: u32) -> Option<Value> {
        let (step, given) = self.flow.given(owner, at).into_iter().next()?;
        let Given::Value(written) = given else { return None };
        if written.len() > LONGEST
            || self.flow.runs(step, Some(at), &|condition, at| self.holds(condition, at)) != Some(true)
        {
            return None;
        }
        let Expression::Call(class, arguments) = expression(written) else { return None };
        if arguments.iter().any(|(keyword, _)| keyword.is_none()) {
            return None;
        }
        let from = From { known: self, at: step };
        if let Some((_, given)) = arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some(field)) {
            return value(given, &from);
        }
        let Given::Value(default) = self.flow.field(&class, field)? else { return None };
        match expression(default) {
            Expression::Call(name, arguments) if name == "field" || name == "Field" => {
                let is_default =
                    |(keyword, _): &&(Option<String>, Expression)| keyword.as_deref() == Some("default");
                value(&arguments.iter().find(is_default)?.1, &from)
            }
            default => value(&default, &from),
        }
    }
}
