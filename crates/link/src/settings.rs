//! `/1?name=value&…`: settings by name, sorted, with short names for the usual degrees.

use super::bounds::{LinkError, MAX_SETTINGS};
use super::percent;

/// Short names that people type, with Megatron's names.
const SHORT: [(&str, &str); 14] = [
    ("cp", "context_parallel_size"),
    ("ep", "expert_model_parallel_size"),
    ("etp", "expert_tensor_parallel_size"),
    ("ffn", "ffn_hidden_size"),
    ("gbs", "global_batch_size"),
    ("heads", "num_attention_heads"),
    ("hidden", "hidden_size"),
    ("layers", "num_layers"),
    ("mbs", "micro_batch_size"),
    ("nodes", "num_nodes"),
    ("pp", "pipeline_model_parallel_size"),
    ("seq", "seq_length"),
    ("tp", "tensor_model_parallel_size"),
    ("vpp", "virtual_pipeline_model_parallel_size"),
];

/// The full name of a setting; any name that is not a short one is returned unchanged.
#[must_use]
pub fn long_name(name: &str) -> &str {
    SHORT.iter().find(|(short, _)| *short == name).map_or(name, |&(_, long)| long)
}

pub(super) fn encode(settings: &[(String, String)]) -> String {
    let mut pairs: Vec<String> = settings
        .iter()
        .map(|(name, value)| {
            // The short names are canonical: equal settings give equal links, whichever name was typed.
            let short =
                SHORT.iter().find(|(_, long)| long == name).map_or(name.as_str(), |&(short, _)| short);
            format!("{}={}", percent::encode(short), percent::encode(value))
        })
        .collect();
    pairs.sort();
    format!("/1?{}", pairs.join("&"))
}

pub(super) fn decode(query: &str) -> Result<Vec<(String, String)>, LinkError> {
    let mut settings: Vec<(String, String)> = Vec::new();
    let pairs = || query.split('&').filter(|pair| !pair.is_empty());
    // Counted before anything is decoded or stored.
    let count = pairs().count();
    if count > MAX_SETTINGS {
        return Err(LinkError::TooMany { what: "settings", count, most: MAX_SETTINGS });
    }
    for pair in pairs() {
        // `&sequence_parallel&`: a bare name means `true`.
        let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
        let name = text(name)?;
        settings.push((long_name(&name).to_owned(), text(value)?));
    }
    // Sorted by name, then value, so that equal contents compare equal regardless of the order typed.
    settings.sort();
    Ok(settings)
}

fn text(encoded: &str) -> Result<String, LinkError> {
    percent::decode(encoded).ok_or_else(|| LinkError::NotText(encoded.to_owned()))
}
