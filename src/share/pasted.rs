//! `z1:…`: the pasted texts with what the user answered and changed.

use crate::text::sort_pairs;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::{LinkError, MAX_TEXT};

/// Everything a user has in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    /// The texts in order: a script, perhaps a configuration beside it.
    pub texts: Vec<PastedText>,
    /// Settings changed by hand, by Megatron's names.
    pub settings: Vec<(String, String)>,
    /// Answers for variables that the script leaves to its environment.
    pub environment: Vec<(String, String)>,
    /// The words after the script in its call.
    pub arguments: String,
}

/// One pasted or dropped text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastedText {
    /// File name; empty when pasted.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Compression level: the best, links are written rarely.
const LEVEL: u8 = 9;

impl Pasted {
    /// As JSON, equal contents in equal form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json(self)
    }

    /// From what [`Pasted::to_json`] gave, whoever wrote it.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        Some(Self {
            texts: object.get("texts")?.as_array()?.iter().filter_map(text).collect(),
            settings: pairs(object.get("settings")),
            environment: pairs(object.get("environment")),
            arguments: object.get("arguments").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    }
}

fn json(pasted: &Pasted) -> Value {
    let texts = pasted
        .texts
        .iter()
        .map(|text| Value::Array(vec![Value::from(text.name.as_str()), Value::from(text.text.as_str())]));
    let mut object = Map::new();
    object.insert("texts".into(), Value::Array(texts.collect()));
    for (key, pairs) in [("settings", &pasted.settings), ("environment", &pasted.environment)] {
        if !pairs.is_empty() {
            let mut pairs: Vec<_> = pairs.clone();
            sort_pairs(&mut pairs);
            let map: Map<String, Value> =
                pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
            object.insert(key.into(), Value::Object(map));
        }
    }
    if !pasted.arguments.is_empty() {
        object.insert("arguments".into(), Value::from(pasted.arguments.as_str()));
    }
    Value::Object(object)
}

pub(super) fn encode(pasted: &Pasted) -> String {
    let json = pasted.to_json().to_string();
    format!("z1:{}", URL_SAFE_NO_PAD.encode(miniz_oxide::deflate::compress_to_vec(json.as_bytes(), LEVEL)))
}

pub(super) fn decode(data: &str) -> Result<Pasted, LinkError> {
    let broken = |why: &str| LinkError(format!("the link is damaged ({why}): copy it again, whole"));
    let bytes = URL_SAFE_NO_PAD.decode(data).map_err(|_| broken("a character that no link has"))?;
    let json = miniz_oxide::inflate::decompress_to_vec_with_limit(&bytes, MAX_TEXT)
        .map_err(|_| broken("it does not unfold, or to more than 1 MiB"))?;
    let value: Value = serde_json::from_slice(&json).map_err(|_| broken("no JSON inside"))?;
    Pasted::from_json(&value).ok_or_else(|| broken("no text inside"))
}

fn text(value: &Value) -> Option<PastedText> {
    let name = value.get(0)?.as_str()?.to_owned();
    let text = value.get(1)?.as_str()?.to_owned();
    Some(PastedText { name, text })
}

fn pairs(value: Option<&Value>) -> Vec<(String, String)> {
    let object = value.and_then(Value::as_object);
    let pairs = object.into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
