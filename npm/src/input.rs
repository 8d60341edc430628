//! The caller's input: texts, settings, answers.

use serde_json::{Map, Value};
use shardscope::bash::Environment;
use shardscope::launch::{Request, Resolution, read};
use shardscope::link::{Pasted, PastedText, Shared};
use shardscope::session::UserInput;
use shardscope::source::Source;

/// More text than this is not read. Unit: byte.
const MAX_TEXT: usize = 4 << 20;

/// `{text | texts, accelerator?, settings?, environment?, arguments?}`.
pub(crate) struct Input(Pasted);

impl Input {
    /// # Errors
    /// A sentence that says what is wrong with the call.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(json).map_err(|error| format!("the input is no JSON: {error}"))?;
        let object = value.as_object().ok_or("the input must be an object")?;
        let mut settings = pairs(object.get("settings"));
        if let Some(accelerator) = object.get("accelerator").and_then(Value::as_str) {
            settings.push(("accelerator".into(), accelerator.into()));
        }
        let texts = texts(object);
        if texts.iter().map(|text| text.text.len()).sum::<usize>() > MAX_TEXT {
            return Err(format!("the texts are longer than {MAX_TEXT} bytes"));
        }
        Ok(Self(Pasted {
            texts,
            settings,
            environment: pairs(object.get("environment")),
            arguments: object.get("arguments").and_then(Value::as_str).unwrap_or_default().to_owned(),
        }))
    }

    pub(crate) fn of_settings(settings: Vec<(String, String)>) -> Self {
        Self(Pasted { settings, ..Pasted::default() })
    }

    pub(crate) fn of_pasted(pasted: Pasted) -> Self {
        Self(pasted)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    pub(crate) fn source(&self) -> Source {
        Source::from_files(self.0.texts.iter().map(|text| (text.name.as_str(), text.text.as_str())))
    }

    pub(crate) fn resolve(&self, source: &Source) -> Resolution {
        let environment = Environment {
            variables: self.0.environment.clone(),
            arguments: self.0.arguments.split_ascii_whitespace().map(Into::into).collect(),
        };
        read(&Request { source, environment: &environment, overrides: &self.0.settings })
    }

    pub(crate) fn given(self) -> UserInput {
        UserInput::of_pasted(self.0)
    }

    pub(crate) fn shared(self) -> Shared {
        if self.0.texts.iter().all(|text| text.text.trim().is_empty()) {
            Shared::Settings(self.0.settings)
        } else {
            Shared::Pasted(self.0)
        }
    }
}

fn texts(object: &Map<String, Value>) -> Vec<PastedText> {
    let named = |value: &Value| match value {
        Value::String(text) => Some(PastedText { name: String::new(), text: text.clone() }),
        _ => Some(PastedText {
            name: value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            text: value.get("text")?.as_str()?.to_owned(),
        }),
    };
    let one = object.get("text").and_then(named);
    let many = object.get("texts").and_then(Value::as_array).into_iter().flatten().filter_map(named);
    one.into_iter().chain(many).collect()
}

fn pairs(value: Option<&Value>) -> Vec<(String, String)> {
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let object = value.and_then(Value::as_object).into_iter().flatten();
    object.map(|(name, value)| (name.clone(), written(value))).collect()
}
