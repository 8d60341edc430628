//! Names that a trainer has for models of the Hub.

/// litgpt's names that are other than those on the Hub (`litgpt/config.py`, `name` and `hf_config`).
const NAMES: [(&str, &str); 3] = [
    ("tiny-llama-1.1b", "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T"),
    ("tiny-llama-1.1b-chat", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
    ("micro-llama-300M", "keeeeenw/MicroLlama"),
];

/// A model's name on the Hub.
pub(super) fn on_hub(name: &str) -> &str {
    NAMES.iter().find(|(own, _)| *own == name).map_or(name, |(_, hub)| hub)
}
