//! `settings`, `questions`, `diagnostics` and `not_modelled` of the document.

use serde::{Serialize, Serializer};

use super::tree::Object;
use shardscope_plan::{self as plan, SettingValue};
use shardscope_source::{self as text, Source, Span};

/// One setting of the plan, read or assumed.
#[derive(Debug, Serialize)]
pub struct Setting<'r> {
    /// The value: null, a boolean, an integer, a real number, a text, or a list of these.
    pub value: Value<'r>,
    /// Where it comes from: `script`, `environment`, `catalog`, `default`, `derived` or `user`.
    pub origin: &'static str,
    /// The flag, variable or key that states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<&'r str>,
    /// Where it is written.
    #[serde(flatten)]
    pub place: Position<'r>,
    /// A remark on how the value was determined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'r str>,
}

/// A setting's value as bare JSON.
#[derive(Debug)]
pub struct Value<'r>(&'r SettingValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            SettingValue::Null => serializer.serialize_none(),
            SettingValue::Bool(value) => serializer.serialize_bool(*value),
            SettingValue::Int(value) => serializer.serialize_u64(*value),
            SettingValue::Real(value) => serializer.serialize_f64(*value),
            SettingValue::Text(value) => serializer.serialize_str(value),
            SettingValue::List(values) => serializer.collect_seq(values.iter().map(Value)),
        }
    }
}

/// A place in the pasted text; empty if there is none.
#[derive(Debug, Default, Serialize)]
pub struct Position<'r> {
    /// From 1, in the file that `file` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// From 1. Unit: character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Unit: character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// The file's name, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'r str>,
}

impl<'r> Position<'r> {
    fn new(source: &'r Source, span: Option<Span>) -> Self {
        let Some(span) = span else { return Self::default() };
        let position = source.position(span.start);
        let part = source.parts().get(position.part).filter(|_| source.parts().len() > 1);
        Self {
            line: Some(position.line),
            column: Some(position.column),
            // Characters, not bytes: as editors count.
            length: Some(source.slice(span).chars().count()),
            file: part.map(|part| part.name.as_str()).filter(|name| !name.is_empty()),
        }
    }
}

/// What the text leaves open and the report needs.
#[derive(Debug, Serialize)]
pub struct Question<'r> {
    /// The setting or variable asked for.
    pub name: &'r str,
    /// The question in words.
    pub prompt: &'r str,
    /// What may be answered; absent if anything may.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub choices: &'r [String],
    /// A sensible answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<&'r str>,
}

/// What is wrong with the text or worth knowing about it.
#[derive(Debug, Serialize)]
pub struct Diagnostic<'r> {
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// Short stable name.
    pub code: &'r str,
    /// A sentence.
    pub message: &'r str,
    /// What would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'r str>,
    /// Its place in the text.
    #[serde(flatten)]
    pub place: Position<'r>,
}

/// A setting that changes figures and is not modelled.
#[derive(Debug, Serialize)]
pub struct NotModelled<'r> {
    /// The flag, key or setting; the name by which the reader can choose to continue without it.
    pub name: &'r str,
    /// Its value as written; empty for a switch.
    pub value: &'r str,
    /// What it would change: `model`, `memory`, `communication` or `time`.
    pub effect: &'static str,
    /// Description that follows "not modelled:".
    pub message: &'r str,
    /// Its place in the text.
    #[serde(flatten)]
    pub place: Position<'r>,
}

pub(super) fn settings<'r>(
    source: &'r Source,
    settings: &'r [plan::Setting],
) -> Object<&'static str, Setting<'r>> {
    let one = |setting: &'r plan::Setting| Setting {
        value: Value(&setting.value),
        origin: setting.origin.name(),
        flag: setting.flag.as_deref(),
        place: Position::new(source, setting.span),
        note: setting.note.as_deref(),
    };
    Object(settings.iter().map(|setting| (setting.name(), one(setting))).collect())
}

impl<'r> Question<'r> {
    pub(super) fn new(question: &'r plan::Question) -> Self {
        Self {
            name: question.name(),
            prompt: &question.prompt,
            choices: &question.choices,
            proposal: question.proposal.as_deref(),
        }
    }
}

impl<'r> Diagnostic<'r> {
    pub(super) fn new(source: &'r Source, diagnostic: &'r text::Diagnostic) -> Self {
        Self {
            severity: diagnostic.severity.name(),
            code: diagnostic.code.name(),
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
            place: Position::new(source, diagnostic.span),
        }
    }
}

impl<'r> NotModelled<'r> {
    pub(super) fn new(source: &'r Source, item: &'r plan::NotModelled) -> Self {
        Self {
            name: &item.name,
            value: &item.value,
            effect: item.effect.name(),
            message: &item.message,
            place: Position::new(source, item.span),
        }
    }
}
