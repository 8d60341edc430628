//! From a source to its [`Script`]: set up, run, collect.

use super::super::notes::Notes;
use super::super::script::{CommandKind, Environment, Fragment, Script, Variable};
use super::super::value::{Origin, Value, Word};
use super::super::{directives, limits, parse};
use super::parameter::is_name;
use super::state::{Evaluator, Positional, Status};
use super::variables::{Elements, Functions, Shape, Slot, Variables};
use shardscope_source::{Code, Diagnostic, Source, Span};

/// Reads the first text of a source as a shell script; the others are files it may read.
pub fn evaluate(source: &Source, environment: &Environment) -> Script {
    evaluate_part(source, 0, environment)
}

/// Reads one text of a source as a shell script.
pub fn evaluate_part(source: &Source, part: usize, environment: &Environment) -> Script {
    // A part that does not exist reads as an empty text.
    let whole = source.parts().get(part).map_or(Span::default(), |part| part.span);
    let text = source.slice(whole);
    if text.len() > limits::TEXT_BYTES {
        let found = Diagnostic::error(
            Code::TextTooLong,
            "a launch script has a few kilobytes; this text has more than 4 MiB",
        )
        .at(whole);
        return Script { diagnostics: vec![found], ..Script::default() };
    }
    let mut shell = Evaluator::new(source, text.len(), environment);
    let value = Value::written(text, whole);
    // Before anything runs, since the scheduler has set its variables when the script starts.
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
        let mut variables = Variables::default();
        for (name, text) in &environment.variables {
            if is_name(name) {
                let elements = Elements::scalar(given(text));
                variables.put(
                    name,
                    Slot {
                        shape: Shape::Scalar,
                        elements,
                        exported: true,
                        integer: false,
                        open: false,
                        span: None,
                    },
                );
            }
        }
        Self {
            source,
            notes: Notes::new(length),
            variables,
            functions: Functions::default(),
            positional: positional(environment),
            commands: Vec::new(),
            files: Vec::new(),
            overwritten: Vec::new(),
            files_run: Vec::new(),
            directives: Vec::new(),
            branches: Vec::new(),
            branch_of: Vec::new(),
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
            skipped: false,
            peeks_left: limits::PEEKS,
            undecided: 0,
            substitutions: 0,
            any_case: false,
            extended: false,
            last_here: false,
            calls: 0,
        }
    }

    fn finish(self) -> Script {
        let mut used = Vec::new();
        // What only a skipped branch uses, or what is only printed (`echo "ARGS: $ARGS"`), may still be the fragment that
        // somebody pasted.
        for command in self.commands.iter().filter(|command| command.kind == CommandKind::Run) {
            flag_starts(&command.words, &mut used);
        }
        used.sort();
        used.dedup();
        let mut variables = Vec::new();
        for (name, slot) in self.variables.all() {
            variables.push(Variable {
                name: (**name).to_owned(),
                values: slot.elements.values(),
                array: slot.shape != Shape::Scalar,
                exported: slot.exported,
                span: slot.span,
            });
        }
        let fragments = fragments(&variables, &used);
        Script {
            commands: self.commands,
            variables,
            fragments,
            directives: self.directives,
            files: self.files,
            overwritten: self.overwritten,
            branches: self.branches,
            holes: self.notes.holes,
            missing_files: self.missing_files,
            diagnostics: self.notes.diagnostics,
        }
    }
}

fn given(text: &str) -> Value {
    Value::from_text(text, Origin::given())
}

/// The positional parameters: those of the call, with individual ones overridden by number.
fn positional(environment: &Environment) -> Positional {
    let values = environment.arguments.iter().map(|word| given(word)).collect();
    let mut numbered = Vec::new();
    for (name, text) in &environment.variables {
        if let Ok(number @ 1..) = name.trim_start_matches('$').parse() {
            numbered.push((number, given(text)));
        }
    }
    // Open even if the call is given: parameters may be given one by one, and those past its end stay questions.
    Positional { values, open: true, shifted: 0, numbered }
}

/// Adds the places where options are written among these words.
fn flag_starts(words: &[Word], starts: &mut Vec<u32>) {
    for word in words {
        if let Some(first) = word.value.pieces().next()
            && first.hole.is_none()
            && first.text.starts_with("--")
        {
            // By its place in the source: the same flag written twice is two options.
            starts.push(first.origin.span.start);
        }
    }
}

/// Variables that hold options which no command uses, except those whose options are all included in another one.
fn fragments(variables: &[Variable], used: &[u32]) -> Vec<Fragment> {
    let mut found: Vec<(Fragment, Vec<u32>)> = Vec::new();
    for variable in variables {
        let Some(span) = variable.span else { continue };
        if variable.values.iter().all(|value| !value.text().contains("--")) {
            continue;
        }
        let mut words = Vec::new();
        for value in &variable.values {
            // An array element is a single word, unless it is a quoted line of options.
            if value.text().contains("--") || !variable.array {
                for value in value.fields() {
                    words.push(Word { value, span });
                }
            } else {
                words.push(Word { value: value.clone(), span });
            }
        }
        let mut flags = Vec::new();
        flag_starts(&words, &mut flags);
        flags.sort();
        flags.dedup();
        if !flags.is_empty() && flags.iter().all(|flag| used.binary_search(flag).is_err()) {
            found.push((Fragment { name: variable.name.clone(), words, span }, flags));
        }
    }
    let mut kept = Vec::new();
    for (at, (fragment, flags)) in found.iter().enumerate() {
        // `ALL="$A $B"`: A and B are part of it. Of two with the same options, the first by name is kept.
        let covered = found.iter().enumerate().any(|(other, (_, theirs))| {
            let fewer = flags.len() < theirs.len() || (flags.len() == theirs.len() && other < at);
            fewer && flags.iter().all(|flag| theirs.binary_search(flag).is_ok())
        });
        if !covered {
            kept.push(fragment.clone());
        }
    }
    kept.sort_by_key(|one| one.span);
    kept
}
