//! Bash's builtin commands.

use super::super::parse::DECLARATIONS;
use super::super::script::HoleKind;
use super::super::tree::{Assigned, Assignment};
use super::super::value::{Value, Word};
use super::format;
use super::parameter::is_name;
use super::state::{Evaluator, Flow, Status};
use super::texts::{joined, spaced, values};
use super::variables::{Elements, Shape};
use shardscope_source::Span;

/// Builtins that change nothing here.
const IDLE: &[&str] = &[
    ":", "true", "trap", "ulimit", "umask", "wait", "hash", "alias", "unalias", "times", "disown", "bg",
    "fg", "jobs", "sleep", "sync", "enable", "bind", "history",
];

/// Runs a builtin; `None` if `program` is not a builtin.
pub(crate) fn run(
    shell: &mut Evaluator<'_>,
    program: &str,
    words: &[Word],
    declared: &[Assignment],
    span: Span,
) -> Option<Flow> {
    let arguments = words.get(1..).unwrap_or(&[]);
    match program {
        program if IDLE.contains(&program) => {}
        "set" => set(shell, arguments),
        "shopt" => shopt(shell, arguments),
        // The directory stack is not tracked, so the resulting directory is unknown.
        "pushd" | "popd" => shell.forget("PWD"),
        "false" => shell.status = Status::certain(false),
        "[" | "test" => {
            let words = match arguments {
                [words @ .., last] if program == "[" && last.text() == "]" => words,
                words => words,
            };
            shell.status = shell.test_words(words);
        }
        "echo" => echo(shell, arguments, span),
        "printf" => printf(shell, arguments, span),
        program if DECLARATIONS.contains(&program) => declare(shell, program, arguments, declared, span),
        "unset" => unset(shell, arguments),
        "shift" => shift(shell, arguments),
        "eval" => return Some(evaluate(shell, arguments)),
        "source" | "." => return Some(source(shell, arguments, span)),
        "exit" => {
            leave_with(shell, arguments);
            return Some(exit(shell));
        }
        "return" => {
            leave_with(shell, arguments);
            return Some(Flow::Return);
        }
        "break" => return Some(Flow::Break(levels(arguments))),
        "continue" => return Some(Flow::Continue(levels(arguments))),
        "read" => super::lines::read(shell, arguments, span),
        "mapfile" | "readarray" => super::lines::mapfile(shell, arguments, span),
        "let" => {
            for word in arguments {
                shell.status = match shell.number(&word.value, 0) {
                    Ok(number) => Status::certain(number != 0),
                    Err(_) => Status::UNKNOWN,
                };
            }
        }
        // A relative path from an unknown folder leads to an unknown folder; `cd` itself is assumed to succeed.
        "cd" => {
            if let Some(word) = arguments.last() {
                let value = word.value.clone();
                if value.text().starts_with('/') {
                    shell.set("PWD", value, Some(span));
                } else {
                    shell.forget("PWD");
                }
            }
            shell.status = Status::ASSUMED;
        }
        "pwd" => {
            let value = match shell.scalar("PWD") {
                Some(value) => value.clone(),
                None => shell.unknown(HoleKind::Variable, "PWD", span, Vec::new()),
            };
            shell.emit(&value, span);
        }
        // They depend on the machine or (`getopts`) on the call's arguments: neither their output nor their status is
        // known.
        "getopts" | "type" | "command" | "which" | "caller" => {
            shell.status = Status::UNKNOWN;
            if shell.output.is_some() {
                let name = joined(words);
                let value = shell.unknown(HoleKind::Command, &name, span, Vec::new());
                shell.write(&value);
                shell.status = Status::ASSUMED;
            }
        }
        _ => return None,
    }
    Some(Flow::Next)
}

fn levels(arguments: &[Word]) -> u32 {
    arguments.first().and_then(Word::known).and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn echo(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) {
    let is_option = |text: &str| {
        text.len() > 1 && text.starts_with('-') && text.bytes().skip(1).all(|byte| b"neE".contains(&byte))
    };
    let options = arguments.iter().take_while(|word| is_option(word.text())).count();
    let (given, arguments) = arguments.split_at(options);
    let has = |sign: char| given.iter().any(|word| word.text().contains(sign));
    let out = spaced(arguments, Some(span));
    let mut out = if has('e') { format::unescape(&out) } else { out };
    if !has('n') {
        out.add("\n", span);
    }
    shell.emit(&out, span);
}

fn printf(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) {
    let mut arguments = arguments;
    let mut target = None;
    if arguments.first().is_some_and(|word| word.text() == "-v") {
        target = arguments.get(1).and_then(Word::known).filter(|name| is_name(name)).map(str::to_owned);
        arguments = arguments.get(2..).unwrap_or(&[]);
    }
    if arguments.first().is_some_and(|word| word.text() == "--") {
        arguments = arguments.get(1..).unwrap_or(&[]);
    }
    let Some((pattern, rest)) = arguments.split_first() else { return };
    let out = format::printf(&pattern.value, rest, span);
    match target {
        Some(name) => shell.set(&name, out, Some(span)),
        None => shell.emit(&out, span),
    }
}

fn declare(
    shell: &mut Evaluator<'_>,
    program: &str,
    arguments: &[Word],
    declared: &[Assignment],
    span: Span,
) {
    // Flags may be combined (`declare -gA`); `-x=1` would be a value.
    let has = |flag: char| {
        arguments
            .iter()
            .map(Word::text)
            .any(|text| is_option(text) && !text.contains('=') && text.contains(flag))
    };
    let exports = program == "export" || has('x');
    // In a function `declare` is `local`, unless `-g` says otherwise.
    let is_local =
        program == "local" || (matches!(program, "declare" | "typeset") && shell.calls > 0 && !has('g'));
    let shape = match (has('A'), has('a')) {
        (true, _) => Some(Shape::Map),
        (_, true) => Some(Shape::Array),
        _ => None,
    };
    for assignment in declared {
        if is_local {
            shell.localize(&assignment.name);
        }
        if has('i') {
            shell.make_integer(&assignment.name, assignment.span);
        }
        // Must come before the assignment, which interprets `([a]=1)` according to the variable's shape.
        if shape == Some(Shape::Map) && matches!(assignment.value, Assigned::Array(_)) {
            shell.set_elements(&assignment.name, Shape::Map, Elements::default(), assignment.span);
        }
        shell.assign(assignment);
        if exports {
            shell.export(&assignment.name);
        }
    }
    for word in arguments {
        // `NAME=value` produced by expansion; a hole is not a name.
        let text = word.text();
        let name = text.split('=').next().unwrap_or("");
        if is_option(text) || !is_name(name) {
            continue;
        }
        if is_local {
            shell.localize(name);
        }
        if has('i') {
            shell.make_integer(name, span);
        }
        match shape {
            _ if name.len() < text.len() => {
                shell.set(name, word.value.rest(name.len() + 1), Some(word.origin()))
            }
            // `declare -A m` alone: what follows may be `m[key]=value`. An existing variable keeps its value.
            Some(shape) => match shell.slot(name) {
                Some(slot) if slot.shape == shape => {}
                Some(slot) if shape == Shape::Array => slot.shape = shape,
                _ => shell.set_elements(name, shape, Elements::default(), span),
            },
            // Unset in bash, which expands to nothing; a variable that is unset here would be an unknown from the
            // environment.
            None if is_local && !exports => shell.set(name, Value::default(), Some(span)),
            None => {}
        }
        if exports {
            shell.export(name);
        }
    }
}

fn is_option(text: &str) -> bool {
    text.starts_with('-')
}

fn unset(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let functions = arguments.first().is_some_and(|first| first.text() == "-f");
    for text in arguments.iter().map(Word::text).filter(|text| !is_option(text)) {
        // `unset x` takes a variable; a function only with `-f`.
        let Some((name, index)) = text.split_once('[') else {
            shell.forget(text);
            if functions {
                shell.functions.forget(text);
            }
            continue;
        };
        let Some(slot) = shell.slot(name) else { continue };
        let key = index.trim_end_matches(']').trim_matches(['"', '\'']);
        match slot.shape {
            Shape::Map => slot.elements.remove(0, key),
            Shape::Array => {
                if let Ok(index) = key.parse() {
                    slot.elements.remove(index, "");
                }
            }
            Shape::Scalar => {}
        }
    }
}

fn shift(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let count = usize::try_from(levels(arguments)).unwrap_or(1);
    let present = shell.positional.values.len();
    // If the call is not given, there may be more parameters than are known; `shifted` keeps their numbering right.
    if count > present && !shell.positional.open {
        shell.status = Status::certain(false);
        return;
    }
    shell.positional.values.drain(..count.min(present));
    shell.positional.shifted += count;
}

/// `set -- words` replaces the positional parameters; other options change nothing that matters here.
fn set(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let mut start = 0;
    let mut clears = false;
    while let Some(text) = arguments.get(start).map(Word::text) {
        clears = matches!(text, "--" | "-");
        let options = text.starts_with(['-', '+']);
        start += usize::from(options);
        if clears || !options {
            break;
        }
        // `set -eo pipefail`: each `o` takes the name after it.
        start += text.matches('o').count();
    }
    // `set --` without words clears them; `set -` leaves them.
    if start < arguments.len() || (clears && arguments.iter().any(|word| word.text() == "--")) {
        shell.positional.values = values(arguments.get(start..).unwrap_or(&[]));
        shell.positional.open = false;
        shell.positional.shifted = 0;
    }
}

fn evaluate(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Flow {
    shell.run_text(&spaced(arguments, None))
}

fn source(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Flow {
    let Some((file, rest)) = arguments.split_first() else { return Flow::Next };
    if let Some(content) = shell.readable(&file.value) {
        let positional = shell.positional.clone();
        // In bash, a file sourced without arguments sees its caller's.
        if !rest.is_empty() {
            shell.positional.values = values(rest);
            shell.positional.open = false;
        }
        let flow = shell.run_text(&content);
        shell.positional = positional;
        return if flow == Flow::Return { Flow::Next } else { flow };
    }
    let name = file.text().to_owned();
    if shell.substituting == 0
        && !shell.missing_files.iter().any(|(known, _)| *known == name)
        && shell.missing_files.len() < 100
    {
        shell.missing_files.push((name, span));
    }
    shell.status = Status::ASSUMED;
    Flow::Next
}

/// The status given to `return` and `exit`: the low byte of their argument.
fn leave_with(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let Some(first) = arguments.first() else { return };
    let code = first.known().and_then(|text| text.parse::<i64>().ok());
    shell.status = code.map_or(Status::UNKNOWN, |code| {
        let code = u8::try_from(code.rem_euclid(256)).unwrap_or(1);
        Status { code, ..Status::certain(code == 0) }
    });
}

fn exit(shell: &mut Evaluator<'_>) -> Flow {
    /// Minimum number of options that a command has if it is the training itself.
    const OPTIONS: usize = 4;
    let trained = || {
        shell.commands.iter().any(|command| {
            command.words.iter().filter(|word| word.text().starts_with("--")).count() >= OPTIONS
        })
    };
    // An `exit` before any training was seen is a check of arguments; the training comes after it.
    let guard = shell.conditional > 0 && (shell.uncertain > 0 || !trained());
    if guard && shell.substituting == 0 { Flow::Guard } else { Flow::Stop }
}

fn shopt(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let has = |text: &str| arguments.iter().any(|word| word.text() == text);
    if has("-s") || has("-u") {
        for (name, option) in [
            ("nocasematch", &mut shell.any_case),
            ("extglob", &mut shell.extended),
            ("lastpipe", &mut shell.last_here),
        ] {
            *option = if has(name) { has("-s") } else { *option };
        }
    }
}
