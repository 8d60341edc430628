//! `settings`, `questions` and `diagnostics` of the document.

use crate::intake::{Question, Setting, SettingValue};
use crate::json::Writer;
use crate::text::{Diagnostic, Source, Span};

pub(super) fn settings(w: &mut Writer, source: &Source, settings: &[Setting]) {
    w.object("settings");
    for setting in settings {
        w.object(setting.name);
        value(w, "value", &setting.value);
        w.text("origin", setting.origin.name());
        some_text(w, "flag", setting.flag.as_deref());
        place(w, source, setting.span);
        some_text(w, "note", setting.note.as_deref());
        w.close();
    }
    w.close();
}

/// A text, or nothing at all.
fn some_text(w: &mut Writer, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        w.text(name, value);
    }
}

fn value(w: &mut Writer, name: &str, setting: &SettingValue) {
    match setting {
        SettingValue::Null => w.null(name),
        SettingValue::Bool(value) => w.truth(name, *value),
        SettingValue::Int(value) => w.count(name, *value),
        SettingValue::Real(value) => w.real(name, *value),
        SettingValue::Text(value) => w.text(name, value),
        SettingValue::List(values) => {
            w.list(name);
            for one in values {
                value(w, "", one);
            }
            w.close();
        }
    }
}

/// Line and column from 1, the length in characters, and the file where there are several.
fn place(w: &mut Writer, source: &Source, span: Option<Span>) {
    let Some(span) = span else { return };
    let position = source.position(span.start);
    w.count("line", position.line as u64);
    w.count("column", position.column as u64);
    w.count("length", source.slice(span).chars().count() as u64);
    let name = source.parts().get(position.part).map(|part| part.name.as_str()).unwrap_or_default();
    if source.parts().len() > 1 && !name.is_empty() {
        w.text("file", name);
    }
}

pub(super) fn questions(w: &mut Writer, questions: &[Question]) {
    w.list("questions");
    for question in questions {
        w.object("");
        w.text("name", &question.name);
        w.text("prompt", &question.prompt);
        if !question.choices.is_empty() {
            w.texts("choices", &question.choices);
        }
        some_text(w, "proposal", question.proposal.as_deref());
        w.close();
    }
    w.close();
}

pub(super) fn diagnostics(w: &mut Writer, source: &Source, diagnostics: &[Diagnostic]) {
    w.list("diagnostics");
    for diagnostic in diagnostics {
        w.object("");
        w.text("severity", diagnostic.severity.name());
        w.text("code", diagnostic.code);
        w.text("message", &diagnostic.message);
        some_text(w, "hint", diagnostic.hint.as_deref());
        place(w, source, diagnostic.span);
        w.close();
    }
    w.close();
}
