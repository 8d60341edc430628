//! `z1:…`: the pasted texts with what the user answered and changed.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::bounds::{Damage, LinkError, MAX_SETTINGS, MAX_TEXT, MAX_TEXTS};

/// The state that a link carries: texts, and what was answered and changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pasted {
    /// The texts in order: a script, perhaps with a configuration file.
    pub texts: Vec<PastedText>,
    /// Settings changed by hand, by Megatron's names.
    #[serde(serialize_with = "by_name")]
    pub settings: Vec<(String, String)>,
    /// Answers for variables that the script leaves to its environment.
    #[serde(serialize_with = "by_name")]
    pub environment: Vec<(String, String)>,
    /// The positional arguments of the script.
    pub arguments: String,
}

/// Values by name, in sorted order.
fn by_name<S: Serializer>(values: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
}

/// One pasted or dropped text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PastedText {
    /// File name; empty when pasted.
    pub name: String,
    /// The full text.
    pub text: String,
}

/// The form for links and the browser's storage: empty parts are omitted, and equal contents give equal forms.
#[derive(Debug, Serialize)]
pub struct Compact<'p> {
    /// Name and text of each.
    texts: Vec<(&'p str, &'p str)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<&'p str, &'p str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<&'p str, &'p str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    arguments: &'p str,
}

impl Pasted {
    /// The form to be written as JSON; if a name occurs twice, the last value counts.
    #[must_use]
    pub fn compact(&self) -> Compact<'_> {
        // Sorted by value if a name occurs twice, so that equal contents are written the same regardless of order.
        fn by_name(pairs: &[(String, String)]) -> BTreeMap<&str, &str> {
            let mut pairs: Vec<_> =
                pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            pairs.sort();
            pairs.into_iter().collect()
        }
        Compact {
            texts: self.texts.iter().map(|text| (text.name.as_str(), text.text.as_str())).collect(),
            settings: by_name(&self.settings),
            environment: by_name(&self.environment),
            arguments: &self.arguments,
        }
    }

    /// Reads the output of [`Pasted::compact`], which is untrusted; anything of another form is ignored.
    #[must_use]
    pub fn from_json(value: &Value) -> Option<Self> {
        // Lenient: a link must stay readable forever, also by versions that know more or fewer members. `None`
        // without texts.
        Some(Self {
            texts: value.get("texts")?.as_array()?.iter().filter_map(text).collect(),
            settings: pairs(value.get("settings")),
            environment: pairs(value.get("environment")),
            arguments: value.get("arguments").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    }
}

/// Compression level of deflate, from 0 to 10: links are short, and every character counts.
const LEVEL: u8 = 10;

pub(super) fn encode(pasted: &Pasted) -> String {
    // Writing to memory cannot fail, and all keys are text.
    let json = serde_json::to_vec(&pasted.compact()).unwrap_or_default();
    let mut link = String::from("z1:");
    URL_SAFE_NO_PAD.encode_string(compress_to_vec(&json, LEVEL), &mut link);
    link
}

pub(super) fn decode(data: &str) -> Result<Pasted, LinkError> {
    let broken = LinkError::Damaged;
    let bytes = URL_SAFE_NO_PAD.decode(data).map_err(|_| broken(Damage::Character))?;
    // The limit applies while inflating: a link of a few bytes could otherwise expand to gigabytes.
    let json = decompress_to_vec_with_limit(&bytes, MAX_TEXT).map_err(|_| broken(Damage::Compression))?;
    let value: Value = serde_json::from_slice(&json).map_err(|_| broken(Damage::Json))?;
    let pasted = Pasted::from_json(&value).ok_or(broken(Damage::NoText))?;
    let counts = [
        ("files", pasted.texts.len(), MAX_TEXTS),
        ("settings", pasted.settings.len(), MAX_SETTINGS),
        ("answers", pasted.environment.len(), MAX_SETTINGS),
    ];
    for (what, count, most) in counts {
        if count > most {
            return Err(LinkError::TooMany { what, count, most });
        }
    }
    Ok(pasted)
}

fn text(value: &Value) -> Option<PastedText> {
    // A later version may append members; the meaning of these two never changes.
    let [name, text, ..] = value.as_array()?.as_slice() else { return None };
    Some(PastedText { name: name.as_str()?.to_owned(), text: text.as_str()?.to_owned() })
}

fn pairs(value: Option<&Value>) -> Vec<(String, String)> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
