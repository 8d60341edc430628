//! Commands that bash runs itself.

use super::super::script::HoleKind;
use super::super::tree::{Assigned, Assignment};
use super::super::value::{Value, Word, is_blank};
use super::parameter::is_name;
use super::state::{Data, Evaluator, Flow, Status};
use super::{arithmetic::NoNumber, format};
use crate::text::Span;

/// Runs a builtin; none if `program` is no builtin.
pub(crate) fn run(
    shell: &mut Evaluator<'_>,
    program: &str,
    words: &[Word],
    declared: &[Assignment],
    span: Span,
) -> Option<Flow> {
    let arguments = words.get(1..).unwrap_or(&[]);
    match program {
        ":" | "true" | "trap" | "ulimit" | "umask" | "shopt" | "wait" | "hash" | "alias" | "unalias"
        | "times" | "disown" | "bg" | "fg" | "jobs" | "sleep" | "sync" | "pushd" | "popd" | "enable"
        | "bind" | "history" | "set" => {
            if program == "set" {
                set(shell, arguments);
            }
            if matches!(program, "pushd" | "popd") {
                shell.variables.remove("PWD");
            }
        }
        "false" => shell.status = Status::certain(false),
        "[" | "test" => {
            let mut values: Vec<Value> = arguments.iter().map(|word| word.value.clone()).collect();
            if program == "[" && values.last().is_some_and(|value| value.text() == "]") {
                values.pop();
            }
            shell.status = shell.test_words(&values);
        }
        "echo" => echo(shell, arguments, span),
        "printf" => printf(shell, arguments, span),
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            declare(shell, program, arguments, declared, span)
        }
        "unset" => unset(shell, arguments),
        "shift" => shift(shell, arguments),
        "eval" => return Some(evaluate(shell, arguments)),
        "source" | "." => return Some(source(shell, arguments, span)),
        "exit" => return Some(exit(shell)),
        "return" => {
            if let Some(code) = arguments.first().and_then(Word::known) {
                shell.status = Status::certain(code == "0");
            }
            return Some(Flow::Return);
        }
        "break" => return Some(Flow::Break(levels(arguments))),
        "continue" => return Some(Flow::Continue(levels(arguments))),
        "read" => read(shell, arguments, span),
        "mapfile" | "readarray" => mapfile(shell, arguments, span),
        "let" => {
            for word in arguments {
                shell.status = match shell.number(&word.value, 0) {
                    Ok(number) => Status::certain(number != 0),
                    Err(NoNumber::Holes(_) | NoNumber::Wrong(_)) => Status::UNKNOWN,
                };
            }
        }
        "cd" => {
            if let Some(word) = arguments.last() {
                let value = word.value.clone();
                if value.text().starts_with('/') {
                    shell.set("PWD", value, Some(span));
                } else {
                    shell.variables.remove("PWD");
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
        "getopts" | "type" | "command" | "which" | "caller" => {
            shell.status = Status::UNKNOWN;
            if shell.output.is_some() {
                let name = super::simple::joined(words);
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
    let has = |sign: char| arguments.iter().take(options).any(|word| word.text().contains(sign));
    let mut out = Value::default();
    for (at, word) in arguments.iter().skip(options).enumerate() {
        if at > 0 {
            out.append(&Value::computed(" ", span));
        }
        out.append(&word.value);
    }
    let mut out = if has('e') { format::unescape(&out) } else { out };
    if !has('n') {
        out.append(&Value::computed("\n", span));
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
    let flags: String = arguments
        .iter()
        .map(Word::text)
        .filter(|text| text.starts_with('-') && !text.contains('='))
        .collect();
    let exports = program == "export" || flags.contains('x');
    let is_local =
        program == "local" || (matches!(program, "declare" | "typeset") && !shell.locals.is_empty());
    let map = flags.contains('A');
    for assignment in declared {
        if is_local {
            shell.localize(&assignment.name);
        }
        if map && matches!(assignment.value, Assigned::Array(_)) {
            shell.set_data(&assignment.name, Data::Map(Default::default()), assignment.span);
        }
        shell.assign(assignment);
        if exports {
            shell.export(&assignment.name);
        }
    }
    for word in arguments.iter().filter(|word| !word.text().starts_with('-')) {
        let (name, value) = split_assignment(&word.value);
        if !is_name(&name) {
            continue;
        }
        if is_local {
            shell.localize(&name);
        }
        match value {
            Some(value) => shell.set(&name, value, Some(word.origin())),
            None if map => shell.set_data(&name, Data::Map(Default::default()), span),
            None if flags.contains('a') => shell.set_data(&name, Data::Array(Default::default()), span),
            None if is_local && !exports => shell.set(&name, Value::default(), Some(span)),
            None => {}
        }
        if exports {
            shell.export(&name);
        }
    }
}

/// `NAME=value` made by expansion.
fn split_assignment(value: &Value) -> (String, Option<Value>) {
    let first = value.pieces().next();
    if first.is_some_and(|piece| piece.hole.is_some()) {
        return (String::new(), None);
    }
    match value.text().find('=') {
        Some(at) => {
            let name = value.text().get(..at).unwrap_or("").to_owned();
            (name, Some(value.slice(at + 1, value.text().len())))
        }
        None => (value.text().to_owned(), None),
    }
}

fn unset(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    for word in arguments.iter().filter(|word| !word.text().starts_with('-')) {
        let text = word.text();
        match text.split_once('[') {
            Some((name, index)) => {
                let key = index.trim_end_matches(']').trim_matches(['"', '\'']);
                match shell.variables.get_mut(name).map(|slot| &mut slot.data) {
                    Some(Data::Array(values)) => {
                        if let Ok(key) = key.parse() {
                            let key: u32 = key;
                            values.remove(&key);
                        }
                    }
                    Some(Data::Map(map)) => {
                        map.remove(key);
                    }
                    _ => {}
                }
            }
            None => {
                shell.variables.remove(text);
                if arguments.first().is_some_and(|first| first.text() == "-f") {
                    shell.functions.remove(text);
                }
            }
        }
    }
}

fn shift(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let count = usize::try_from(levels(arguments)).unwrap_or(1);
    let present = shell.positional.values.len();
    if count > present && !shell.positional.open {
        shell.status = Status::certain(false);
        return;
    }
    shell.positional.values.drain(..count.min(present));
    shell.positional.shifted += count;
}

/// `set -- words` replaces the positional parameters; other options change nothing that matters here.
fn set(shell: &mut Evaluator<'_>, arguments: &[Word]) {
    let start = match arguments.iter().position(|word| word.text() == "--") {
        Some(at) => at + 1,
        None => arguments
            .iter()
            .take_while(|word| word.text().starts_with(['-', '+']) || word.text() == "pipefail")
            .count(),
    };
    if start < arguments.len() || arguments.iter().any(|word| word.text() == "--") {
        shell.positional.values = arguments.iter().skip(start).map(|word| word.value.clone()).collect();
        shell.positional.open = false;
        shell.positional.shifted = 0;
    }
}

fn evaluate(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Flow {
    let mut text = Value::default();
    for (at, word) in arguments.iter().enumerate() {
        if at > 0 {
            text.append(&Value::computed(" ", word.span));
        }
        text.append(&word.value);
    }
    shell.run_text(&text)
}

fn source(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) -> Flow {
    let Some((file, rest)) = arguments.split_first() else { return Flow::Next };
    if let Some(content) = shell.readable(&file.value) {
        let positional = shell.positional.clone();
        if !rest.is_empty() {
            shell.positional.values = rest.iter().map(|word| word.value.clone()).collect();
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

fn exit(shell: &mut Evaluator<'_>) -> Flow {
    /// Options a command has at least when it is the training itself.
    const OPTIONS: usize = 4;
    let trained = || {
        shell.commands.iter().any(|command| {
            command.words.iter().filter(|word| word.text().starts_with("--")).count() >= OPTIONS
        })
    };
    let guard = shell.conditional > 0 && (shell.uncertain > 0 || !trained());
    if guard && shell.substituting == 0 { Flow::Guard } else { Flow::Stop }
}

fn read(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) {
    let mut names = Vec::new();
    let mut array = false;
    let mut skip = false;
    let mut terminator = '\n';
    for word in arguments {
        let text = word.text();
        if std::mem::take(&mut skip) {
            continue;
        }
        if let Some(options) = text.strip_prefix('-') {
            array |= options.contains('a');
            if options.ends_with('d') {
                terminator = '\0';
            }
            skip = options.ends_with(['p', 't', 'n', 'd', 'u', 'i']);
        } else {
            names.push(text.to_owned());
        }
    }
    let Some(input) = shell.input.take() else {
        shell.status = Status::UNKNOWN;
        return;
    };
    if input.is_empty() {
        shell.status = Status::certain(false);
        shell.input = Some(input);
        return;
    }
    let length = input.text().find(terminator).unwrap_or(input.text().len());
    let line = input.slice(0, length);
    shell.input = Some(input.slice(length + 1, input.text().len().max(length + 1)));
    let separators = shell.known("IFS").map_or_else(|| " \t\n".to_owned(), str::to_owned);
    let separates = |c: char| separators.contains(c) || (separators.len() > 1 && is_blank(c));
    if array {
        let fields = super::words::strict_fields(&line, separates);
        let values = (0_u32..).zip(fields).collect();
        if let Some(name) = names.first() {
            shell.set_data(name, Data::Array(values), span);
        }
        return;
    }
    let fields = super::words::strict_fields(&line, separates);
    let count = names.len();
    for (at, name) in names.iter().enumerate().filter(|(_, name)| is_name(name)) {
        let value = if at + 1 == count && fields.len() > count {
            let before: usize = fields.iter().take(at).map(|field| field.text().len() + 1).sum();
            line.slice(before.min(line.text().len()), line.text().len()).trimmed()
        } else {
            fields.get(at).cloned().unwrap_or_default()
        };
        shell.set(name, value, Some(span));
    }
}

fn mapfile(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) {
    let name = arguments.last().map(Word::text).filter(|text| is_name(text)).unwrap_or("MAPFILE").to_owned();
    let Some(input) = shell.input.take() else { return };
    let lines = input.fields_by(|c| c == '\n');
    shell.set_data(&name, Data::Array((0_u32..).zip(lines).collect()), span);
}
