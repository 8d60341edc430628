//! From a source to its [`Script`]: set up, run, gather.

use super::super::notes::Notes;
use super::super::script::{CommandKind, Environment, Fragment, Script, Variable};
use super::super::value::{Origin, Value, Word};
use super::super::{directives, limits, parse};
use super::parameter::is_name;
use super::state::{Evaluator, Positional, Status};
use super::variables::{Elements, Functions, Shape, Slot, Variables};
use shardscope_sorting::{sort, sort_by_key};
use shardscope_source::{Code, Diagnostic, Source, Span};

/// Name under which [`Environment::variables`] may hold the whole call line.
const ARGUMENTS: &str = "arguments";

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
    // Before anything runs: the scheduler has set its variables when the script starts.
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
            if is_name(name) && name != ARGUMENTS {
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
        // What a branch not taken uses may still be the fragment that somebody pasted.
        for command in self.commands.iter().filter(|command| command.kind != CommandKind::Skipped) {
            flag_starts(&command.words, &mut used);
        }
        sort(&mut used);
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

/// The positional parameters: the call line, over which single ones may be set by number.
fn positional(environment: &Environment) -> Positional {
    let line = environment.variables.iter().rev().find(|(name, _)| name == ARGUMENTS);
    let mut values = Vec::new();
    match line {
        Some((_, line)) if environment.arguments.is_empty() => {
            for word in line.split_ascii_whitespace() {
                values.push(given(word));
            }
        }
        _ => {
            for word in &environment.arguments {
                values.push(given(word));
            }
        }
    }
    let mut numbered = Vec::new();
    for (name, text) in &environment.variables {
        if let Ok(number @ 1..) = name.trim_start_matches('$').parse() {
            numbered.push((number, given(text)));
        }
    }
    // Open even with a call line: places may be given one by one, and those past its end stay questions.
    Positional { values, open: true, shifted: 0, numbered }
}

/// Adds where options are written among these words.
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

/// Variables that hold options of which no command has any, without those whose options another one includes.
fn fragments(variables: &[Variable], used: &[u32]) -> Vec<Fragment> {
    let mut found: Vec<(Fragment, Vec<u32>)> = Vec::new();
    for variable in variables {
        let Some(span) = variable.span else { continue };
        if variable.values.iter().all(|value| !value.text().contains("--")) {
            continue;
        }
        let mut words = Vec::new();
        for value in &variable.values {
            // An array's element is a word as it stands, unless it is a line of options in quotes.
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
        sort(&mut flags);
        flags.dedup();
        if !flags.is_empty() && flags.iter().all(|flag| used.binary_search(flag).is_err()) {
            found.push((Fragment { name: variable.name.clone(), words, span }, flags));
        }
    }
    let mut kept = Vec::new();
    for (at, (fragment, flags)) in found.iter().enumerate() {
        // `ALL="$A $B"`: A and B are part of it. Of two with the same options the first by name stays.
        let covered = found.iter().enumerate().any(|(other, (_, theirs))| {
            let fewer = flags.len() < theirs.len() || (flags.len() == theirs.len() && other < at);
            fewer && flags.iter().all(|flag| theirs.binary_search(flag).is_ok())
        });
        if !covered {
            kept.push(fragment.clone());
        }
    }
    sort_by_key(&mut kept, |one| one.span);
    kept
}
