//! `settings`, `questions` and `diagnostics` of the document.

use serde_json::{Map, Value, json};

use crate::intake::{Question, Setting, SettingValue};
use crate::text::{Diagnostic, Source, Span};

pub(super) fn settings(source: &Source, settings: &[Setting]) -> Value {
    let object: Map<String, Value> =
        settings.iter().map(|setting| (setting.name.to_owned(), one(source, setting))).collect();
    Value::Object(object)
}

fn one(source: &Source, setting: &Setting) -> Value {
    let mut object = Map::new();
    object.insert("value".into(), value(&setting.value));
    object.insert("origin".into(), Value::from(setting.origin.name()));
    if let Some(flag) = &setting.flag {
        object.insert("flag".into(), Value::from(flag.as_str()));
    }
    place(source, setting.span, &mut object);
    if let Some(note) = &setting.note {
        object.insert("note".into(), Value::from(note.as_str()));
    }
    Value::Object(object)
}

fn value(setting: &SettingValue) -> Value {
    match setting {
        SettingValue::Null => Value::Null,
        SettingValue::Bool(value) => Value::from(*value),
        SettingValue::Int(value) => Value::from(*value),
        SettingValue::Real(value) => Value::from(*value),
        SettingValue::Text(value) => Value::from(value.as_str()),
        SettingValue::List(values) => values.iter().map(value).collect(),
    }
}

/// Line and column from 1, the length in characters, and the file where there are several.
fn place(source: &Source, span: Option<Span>, object: &mut Map<String, Value>) {
    let Some(span) = span else { return };
    let position = source.position(span.start);
    object.insert("line".into(), Value::from(position.line));
    object.insert("column".into(), Value::from(position.column));
    let characters = source.slice(span).chars().count();
    object.insert("length".into(), Value::from(characters));
    let name = source.parts().get(position.part).map(|part| part.name.as_str()).unwrap_or_default();
    if source.parts().len() > 1 && !name.is_empty() {
        object.insert("file".into(), Value::from(name));
    }
}

pub(super) fn questions(questions: &[Question]) -> Value {
    questions
        .iter()
        .map(|question| {
            let mut object = Map::new();
            object.insert("name".into(), Value::from(question.name.as_str()));
            object.insert("prompt".into(), Value::from(question.prompt.as_str()));
            if !question.choices.is_empty() {
                object.insert("choices".into(), Value::from(question.choices.clone()));
            }
            if let Some(proposal) = &question.proposal {
                object.insert("proposal".into(), Value::from(proposal.as_str()));
            }
            Value::Object(object)
        })
        .collect()
}

pub(super) fn diagnostics(source: &Source, diagnostics: &[Diagnostic]) -> Value {
    diagnostics
        .iter()
        .map(|diagnostic| {
            let mut object = Map::new();
            object.insert("severity".into(), json!(diagnostic.severity.name()));
            object.insert("code".into(), json!(diagnostic.code));
            object.insert("message".into(), json!(diagnostic.message));
            if let Some(hint) = &diagnostic.hint {
                object.insert("hint".into(), json!(hint));
            }
            place(source, diagnostic.span, &mut object);
            Value::Object(object)
        })
        .collect()
}
