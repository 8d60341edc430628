//! From a source to its [`Script`]: set up, run, gather.

use std::collections::{BTreeMap, BTreeSet};

use super::super::notes::Notes;
use super::super::script::{Environment, Fragment, Script, Variable};
use super::super::value::{Origin, Value, Word};
use super::super::{directives, limits, parse};
use super::parameter::is_name;
use super::state::{Data, Evaluator, Positional, Slot, Status};
use crate::text::{Diagnostic, Source, Span, sort};

/// Name under which [`Environment::variables`] may hold the whole call line.
const ARGUMENTS: &str = "arguments";

/// Reads the first text of a source as a shell script; the others are files it may read.
pub fn evaluate(source: &Source, environment: &Environment) -> Script {
    evaluate_part(source, 0, environment)
}

/// Reads one text of a source as a shell script.
pub fn evaluate_part(source: &Source, part: usize, environment: &Environment) -> Script {
    let whole = source.parts().get(part).map_or(Span::default(), |part| part.span);
    let text = source.slice(whole);
    if text.len() > limits::TEXT_BYTES {
        let found = Diagnostic::error(
            "text-too-long",
            "a launch script has a few kilobytes; this text has more than 4 MiB",
        )
        .at(whole);
        return Script { diagnostics: vec![found], ..Script::default() };
    }
    let mut shell = Evaluator::new(source, text.len(), environment);
    let value = Value::written(text, whole);
    let found = directives::read(&value);
    directives::set_variables(&mut shell, &found);
    shell.directives = found;
    let list = parse::parse(value.text(), value.marks(), 0, &mut shell.notes);
    shell.run_list(&list);
    shell.substituting = 0;
    shell.run_written_scripts();
    shell.finish()
}

impl<'a> Evaluator<'a> {
    fn new(source: &'a Source, length: usize, environment: &Environment) -> Self {
        let slot = |text: &str| Slot { data: Data::Scalar(given(text)), exported: true, span: None };
        let named = environment.variables.iter().filter(|(name, _)| is_name(name) && name != ARGUMENTS);
        Self {
            source,
            notes: Notes::new(length),
            variables: named.map(|(name, text)| (name.clone(), slot(text))).collect(),
            functions: BTreeMap::new(),
            positional: positional(environment),
            commands: Vec::new(),
            files: Vec::new(),
            files_run: Vec::new(),
            directives: Vec::new(),
            branches: Vec::new(),
            branch_of: BTreeMap::new(),
            missing_files: Vec::new(),
            status: Status::SUCCESS,
            output: None,
            input: None,
            substituting: 0,
            conditional: 0,
            uncertain: 0,
            doubt: None,
            condition_holes: Vec::new(),
            depth: 0,
            steps_left: limits::STEPS,
            outer: None,
            locals: Vec::new(),
            shown: false,
        }
    }

    fn finish(self) -> Script {
        let used: BTreeSet<u32> = self
            .commands
            .iter()
            .flat_map(|command| &command.words)
            .filter_map(|word| flag_start(&word.value))
            .collect();
        let variables: Vec<Variable> =
            self.variables.into_iter().map(|(name, slot)| variable(name, slot)).collect();
        let fragments = fragments(&variables, &used);
        Script {
            commands: self.commands,
            variables,
            fragments,
            directives: self.directives,
            files: self.files,
            branches: self.branches,
            holes: self.notes.holes,
            missing_files: self.missing_files,
            diagnostics: self.notes.diagnostics,
        }
    }
}

fn given(text: &str) -> Value {
    let mut value = Value::default();
    value.push(text, Origin::given(), None);
    value
}

/// The positional parameters: the call line, over which single ones may be set by number.
fn positional(environment: &Environment) -> Positional {
    let line = environment.variables.iter().rev().find(|(name, _)| name == ARGUMENTS);
    let words: Vec<&str> = match line {
        Some((_, line)) if environment.arguments.is_empty() => line.split_ascii_whitespace().collect(),
        _ => environment.arguments.iter().map(String::as_str).collect(),
    };
    let values = words.into_iter().map(given).collect();
    let numbered = environment.variables.iter().filter_map(|(name, text)| {
        let number: usize = name.trim_start_matches('$').parse().ok()?;
        (number > 0).then(|| (number, given(text)))
    });
    Positional { values, open: true, shifted: 0, numbered: numbered.collect() }
}

fn variable(name: String, slot: Slot) -> Variable {
    let (values, array) = match slot.data {
        Data::Scalar(value) => (vec![value], false),
        Data::Array(values) => (values.into_values().collect(), true),
        Data::Map(map) => (map.into_values().collect(), true),
    };
    Variable { name, values, array, exported: slot.exported, span: slot.span }
}

/// Where an option is written, if the word is one.
fn flag_start(value: &Value) -> Option<u32> {
    let first = value.pieces().next().filter(|piece| piece.hole.is_none() && piece.text.starts_with("--"))?;
    Some(first.origin.span.start)
}

/// Variables that hold options of which no command has any, without those whose options another one includes.
fn fragments(variables: &[Variable], used: &BTreeSet<u32>) -> Vec<Fragment> {
    let mut found: Vec<(Fragment, BTreeSet<u32>)> = Vec::new();
    for variable in variables {
        let Some(span) = variable.span else { continue };
        if variable.values.iter().all(|value| !value.text().contains("--")) {
            continue;
        }
        let words: Vec<Word> = variable
            .values
            .iter()
            .flat_map(|value| {
                if value.text().contains("--") || !variable.array {
                    value.fields()
                } else {
                    vec![value.clone()]
                }
            })
            .map(|value| Word { value, span })
            .collect();
        let flags: BTreeSet<u32> = words.iter().filter_map(|word| flag_start(&word.value)).collect();
        if !flags.is_empty() && flags.is_disjoint(used) {
            found.push((Fragment { name: variable.name.clone(), words, span }, flags));
        }
    }
    let covered = |at: usize, flags: &BTreeSet<u32>| {
        found.iter().enumerate().any(|(other, (_, theirs))| {
            other != at && flags.is_subset(theirs) && (flags.len() < theirs.len() || other < at)
        })
    };
    let mut kept: Vec<Fragment> = found
        .iter()
        .enumerate()
        .filter(|(at, (_, flags))| !covered(*at, flags))
        .map(|(_, (fragment, _))| fragment.clone())
        .collect();
    sort(&mut kept, &|left, right| left.span.cmp(&right.span));
    kept
}
