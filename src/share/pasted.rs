//! `z1:…`: the pasted texts with what the user answered and changed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde::{Serialize, Serializer};

use crate::json::{Json, Writer};

use super::{LinkError, MAX_TEXT};

/// Everything a user has in hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pasted {
    /// The texts in order: a script, perhaps a configuration beside it.
    pub texts: Vec<PastedText>,
    /// Settings changed by hand, by Megatron's names.
    #[serde(serialize_with = "by_name")]
    pub settings: Vec<(String, String)>,
    /// Answers for variables that the script leaves to its environment.
    #[serde(serialize_with = "by_name")]
    pub environment: Vec<(String, String)>,
    /// The words after the script in its call.
    pub arguments: String,
}

/// Values under their names, in their order.
fn by_name<S: Serializer>(values: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

/// One pasted or dropped text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PastedText {
    /// File name; empty when pasted.
    pub name: String,
    /// The text.
    pub text: String,
}

impl Pasted {
    /// Writes it as JSON, equal contents in equal form.
    pub fn write(&self, w: &mut Writer, name: &str) {
        w.object(name);
        w.list("texts");
        for text in &self.texts {
            w.list("");
            w.text("", &text.name);
            w.text("", &text.text);
            w.close();
        }
        w.close();
        for (key, pairs) in [("settings", &self.settings), ("environment", &self.environment)] {
            if !pairs.is_empty() {
                w.pairs(key, &unique(pairs));
            }
        }
        if !self.arguments.is_empty() {
            w.text("arguments", &self.arguments);
        }
        w.close();
    }

    /// From what [`Pasted::write`] gave, whoever wrote it.
    #[must_use]
    pub fn from_json(value: &Json) -> Option<Self> {
        let texts = value.get("texts").filter(|texts| matches!(texts, Json::List(_)))?;
        Some(Self {
            texts: texts.list().iter().filter_map(text).collect(),
            settings: pairs(value.get("settings")),
            environment: pairs(value.get("environment")),
            arguments: value.get("arguments").and_then(Json::text).unwrap_or_default().to_owned(),
        })
    }
}

/// The pairs by name; of equal names the last.
fn unique(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let mut sorted = pairs.to_vec();
    sorted.sort();
    let mut out: Vec<(String, String)> = Vec::new();
    for pair in sorted {
        match out.last_mut() {
            Some(last) if last.0 == pair.0 => *last = pair,
            _ => out.push(pair),
        }
    }
    out
}

/// How hard deflate looks for matches, from 0 to 10: links are short, and every character counts.
const LEVEL: u8 = 10;

pub(super) fn encode(pasted: &Pasted) -> String {
    let mut w = Writer::new(false);
    pasted.write(&mut w, "");
    let mut link = String::from("z1:");
    URL_SAFE_NO_PAD.encode_string(compress_to_vec(w.finish().as_bytes(), LEVEL), &mut link);
    link
}

pub(super) fn decode(data: &str) -> Result<Pasted, LinkError> {
    let broken = |why: &str| LinkError(format!("the link is damaged ({why}): copy it again, whole"));
    let bytes = URL_SAFE_NO_PAD.decode(data).map_err(|_| broken("a character that no link has"))?;
    // The limit holds while inflating: a link of a few bytes could otherwise unfold to gigabytes.
    let json = decompress_to_vec_with_limit(&bytes, MAX_TEXT)
        .map_err(|_| broken("it does not unfold, or to more than 1 MiB"))?;
    let value = String::from_utf8(json).ok().and_then(|json| Json::read(&json).ok());
    let value = value.ok_or_else(|| broken("no JSON inside"))?;
    Pasted::from_json(&value).ok_or_else(|| broken("no text inside"))
}

fn text(value: &Json) -> Option<PastedText> {
    let [name, text, ..] = value.list() else { return None };
    Some(PastedText { name: name.text()?.to_owned(), text: text.text()?.to_owned() })
}

fn pairs(value: Option<&Json>) -> Vec<(String, String)> {
    let pairs = value.map(Json::pairs).unwrap_or_default();
    let mut texts = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        if let Some(text) = value.text() {
            texts.push((name.clone(), text.to_owned()));
        }
    }
    texts
}
