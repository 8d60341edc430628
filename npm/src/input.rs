//! What a caller hands in: texts, settings, answers.

use shardscope::intake::shell::Environment;
use shardscope::intake::{Request, Resolution, read};
use shardscope::json::{Json, Writer};
use shardscope::share::{Pasted, PastedText, Shared};
use shardscope::text::Source;

/// More text than this is not read. Unit: byte.
const MAX_TEXT: usize = 4 << 20;

/// `{text | texts, accelerator?, settings?, environment?, arguments?}`.
pub(crate) struct Input(Pasted);

impl Input {
    /// # Errors
    /// A sentence that says what is wrong with the call.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        let object = Json::read(json)
            .map_err(|at| format!("the input is no JSON: it cannot be read from byte {at} on"))?;
        if !matches!(object, Json::Object(_)) {
            return Err("the input must be an object".to_owned());
        }
        let mut settings = pairs(object.get("settings"));
        if let Some(accelerator) = object.get("accelerator").and_then(Json::text) {
            settings.push(("accelerator".into(), accelerator.into()));
        }
        let texts = texts(&object);
        if texts.iter().map(|text| text.text.len()).sum::<usize>() > MAX_TEXT {
            return Err(format!("the texts are longer than {MAX_TEXT} bytes"));
        }
        Ok(Self(Pasted {
            texts,
            settings,
            environment: pairs(object.get("environment")),
            arguments: object.get("arguments").and_then(Json::text).unwrap_or_default().to_owned(),
        }))
    }

    pub(crate) fn of_settings(settings: Vec<(String, String)>) -> Self {
        Self(Pasted { settings, ..Pasted::default() })
    }

    pub(crate) fn of_pasted(pasted: Pasted) -> Self {
        Self(pasted)
    }

    pub(crate) fn to_json(&self) -> String {
        let mut w = Writer::new(false);
        w.object("");
        w.list("texts");
        for text in &self.0.texts {
            w.object("");
            w.text("name", &text.name);
            w.text("text", &text.text);
            w.close();
        }
        w.close();
        w.pairs("settings", &self.0.settings);
        w.pairs("environment", &self.0.environment);
        w.text("arguments", &self.0.arguments);
        w.finish()
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

    pub(crate) fn shared(self) -> Shared {
        if self.0.texts.iter().all(|text| text.text.trim().is_empty()) {
            Shared::Settings(self.0.settings)
        } else {
            Shared::Pasted(self.0)
        }
    }
}

fn texts(object: &Json) -> Vec<PastedText> {
    let named = |value: &Json| match value {
        Json::Text(text) => Some(PastedText { name: String::new(), text: text.clone() }),
        _ => Some(PastedText {
            name: value.get("name").and_then(Json::text).unwrap_or_default().to_owned(),
            text: value.get("text")?.text()?.to_owned(),
        }),
    };
    let mut texts = Vec::new();
    texts.extend(object.get("text").and_then(named));
    let many = object.get("texts").map(Json::list).unwrap_or_default();
    texts.extend(many.iter().filter_map(named));
    texts
}

fn pairs(value: Option<&Json>) -> Vec<(String, String)> {
    let written = |value: &Json| match value {
        Json::Text(text) => text.clone(),
        Json::Null => String::new(),
        other => {
            let mut w = Writer::new(false);
            other.write(&mut w, "");
            w.finish()
        }
    };
    let pairs = value.map(Json::pairs).unwrap_or_default();
    pairs.iter().map(|(name, value)| (name.clone(), written(value))).collect()
}
