//! `read` and `mapfile`: lines of the input into variables.

use super::super::script::HoleKind;
use super::super::value::{Value, Word, is_blank};
use super::parameter::is_name;
use super::state::{Evaluator, Status};
use super::texts::each_line;
use super::variables::{Elements, Shape};
use shardscope_source::Span;

pub(super) fn read(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) {
    let mut names = Vec::new();
    let (mut array, mut raw, mut partly) = (false, false, false);
    let mut terminator = '\n';
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text();
        let Some(options) = text.strip_prefix('-') else {
            names.push(text);
            continue;
        };
        array |= options.contains('a');
        raw |= options.contains('r');
        // Not the whole line, or a line from another file.
        partly |= options.contains(['n', 'N', 'u']);
        // These take the next word.
        if options.ends_with(['p', 't', 'n', 'N', 'd', 'u', 'i']) {
            let value = words.next().map_or("", Word::text);
            if options.ends_with('d') {
                terminator = value.chars().next().unwrap_or('\0');
            }
        }
    }
    // From the terminal: unknown, and as a loop condition treated as not met.
    let Some(input) = shell.input.take() else {
        shell.status = Status::UNKNOWN;
        return;
    };
    if input.is_empty() {
        // The end of the input, which ends `while read`.
        shell.status = Status::certain(false);
        shell.input = Some(input);
        return;
    }
    let length = input.text().find(terminator).unwrap_or(input.len());
    let line = input.part(0, length);
    shell.input = Some(input.rest(length + terminator.len_utf8()));
    // Without -r a backslash escapes the next character, which is not evaluated.
    if partly || (!raw && line.text().contains('\\')) {
        let shown = format!("read {}", names.join(" "));
        for name in names {
            let value = shell.unknown(HoleKind::Command, &shown, span, line.holes());
            shell.set(name, value, Some(span));
        }
        return;
    }
    let separators = shell.known("IFS").unwrap_or(" \t\n");
    let separates = |c: char| separators.contains(c) || (separators.len() > 1 && is_blank(c));
    if array {
        let fields = super::words::strict_fields(&line, &separates);
        if let Some(name) = names.first() {
            shell.set_elements(name, Shape::Array, Elements::listed(fields), span);
            if line.has_holes() {
                shell.leave_open(name);
            }
        }
        return;
    }
    let values = shared_out(&line, &separates, names.len());
    for (name, value) in names.iter().zip(values) {
        if is_name(name) {
            shell.set(name, value, Some(span));
        }
    }
}

/// Splits a line into `count` values; the last takes the rest of it, including separators.
fn shared_out(line: &Value, separates: &dyn Fn(char) -> bool, count: usize) -> Vec<Value> {
    let mut signs = Vec::new();
    let mut at = 0;
    for piece in line.pieces() {
        for c in piece.text.chars() {
            // An unknown's name contains no separators.
            let separator = piece.hole.is_none() && separates(c);
            signs.push((at, separator, separator && is_blank(c)));
            at += c.len_utf8();
        }
    }
    let place = |index: usize| signs.get(index).map_or(line.len(), |sign| sign.0);
    let blank = |index: usize| signs.get(index).is_some_and(|sign| sign.2);
    let separator = |index: usize| signs.get(index).is_some_and(|sign| sign.1);
    let mut values = Vec::new();
    let mut index = 0;
    while blank(index) {
        index += 1;
    }
    while values.len() + 1 < count {
        let start = index;
        while index < signs.len() && !separator(index) {
            index += 1;
        }
        values.push(line.part(place(start), place(index)));
        // Consecutive blanks count as one separator, together with at most one other separator among them.
        while blank(index) {
            index += 1;
        }
        if separator(index) {
            index += 1;
            while blank(index) {
                index += 1;
            }
        }
    }
    let mut end = signs.len();
    while end > index && blank(end - 1) {
        end -= 1;
    }
    // A trailing separator ends the last field, if it is the only one.
    if end > index && separator(end - 1) && !(index..end - 1).any(separator) {
        end -= 1;
    }
    values.push(line.part(place(index), place(end)));
    values
}

pub(super) fn mapfile(shell: &mut Evaluator<'_>, arguments: &[Word], span: Span) {
    let name = arguments.last().map(Word::text).filter(|text| is_name(text)).unwrap_or("MAPFILE");
    let Some(input) = shell.input.take() else {
        // Lines from a command that is not run.
        let value = shell.unknown(HoleKind::Command, &format!("mapfile {name}"), span, Vec::new());
        shell.set_elements(name, Shape::Array, Elements::scalar(value), span);
        return shell.leave_open(name);
    };
    let options: Vec<&str> = arguments.iter().map(Word::text).filter(|text| *text != name).collect();
    if options.iter().any(|option| *option != "-t") {
        let value = shell.unknown(HoleKind::Command, &format!("mapfile {name}"), span, input.holes());
        shell.set_elements(name, Shape::Array, Elements::scalar(value), span);
        return shell.leave_open(name);
    }
    let text = input.text();
    let mut lines = Vec::new();
    let _ = each_line(text, &mut |content, start| {
        // Without -t the newline is kept.
        let end = start + content.len() + usize::from(options.is_empty());
        lines.push(input.part(start, end.min(text.len())));
        (lines.len() <= super::super::limits::WORDS).then_some(())
    });
    if lines.len() > super::super::limits::WORDS {
        lines.truncate(super::super::limits::WORDS);
        shell.report_full(span);
    }
    shell.set_elements(name, Shape::Array, Elements::listed(lines), span);
    if input.has_holes() {
        shell.leave_open(name);
    }
}
