//! What a list of commands would assign, found without running it.

use super::super::tree::{Command, CommandForm, List, Part, Pipeline, Simple};
use shardscope_source::Span;

/// Most names taken from one list.
const NAMES: usize = 200;

/// The variables a list assigns, each with its first assignment.
pub(crate) fn names(list: &List) -> Vec<(String, Span)> {
    let mut out = Vec::new();
    walk(list, &mut out);
    out
}

fn walk(list: &List, out: &mut Vec<(String, Span)>) {
    for statement in list {
        pipeline(&statement.first, out);
        for (_, joined) in &statement.rest {
            pipeline(joined, out);
        }
    }
}

/// The variables that a pipeline assigns: none if it has several stages, since each runs in its own subshell.
pub(crate) fn pipeline(pipeline: &Pipeline, out: &mut Vec<(String, Span)>) {
    if let [command] = pipeline.stages.as_slice()
        && out.len() < NAMES
    {
        visit(command, out);
    }
}

fn visit(command: &Command, out: &mut Vec<(String, Span)>) {
    match &command.kind {
        CommandForm::Simple(simple) => simple_names(simple, out),
        CommandForm::If { arms, otherwise } => {
            for arm in arms {
                walk(&arm.body, out);
            }
            if let Some(list) = otherwise {
                walk(list, out);
            }
        }
        CommandForm::Case { arms, .. } => arms.iter().for_each(|arm| walk(&arm.body, out)),
        CommandForm::For { body, .. }
        | CommandForm::ForArithmetic { body, .. }
        | CommandForm::While { body, .. }
        | CommandForm::Group(body) => walk(body, out),
        // What a subshell sets is lost when it ends, and a function sets nothing until it is called.
        CommandForm::Function { .. }
        | CommandForm::Subshell(_)
        | CommandForm::Test(_)
        | CommandForm::Arithmetic(_) => {}
    }
}

fn simple_names(simple: &Simple, out: &mut Vec<(String, Span)>) {
    // An assignment before a program only affects that program's environment.
    let plain = if simple.words.is_empty() { simple.assignments.as_slice() } else { &[] };
    for assignment in plain.iter().chain(&simple.declared) {
        add(&assignment.name, assignment.span, out);
    }
    let first = simple.words.first().and_then(|word| super::super::parse::literal(&word.parts));
    if matches!(first, Some("read")) {
        for word in simple.words.iter().skip(1) {
            if let [Part::Text { text, .. }] = word.parts.as_slice()
                && super::parameter::is_name(text)
            {
                add(text, word.span, out);
            }
        }
    }
}

fn add(name: &str, span: Span, out: &mut Vec<(String, Span)>) {
    if !out.iter().any(|(known, _)| known == name) {
        out.push((name.to_owned(), span));
    }
}
