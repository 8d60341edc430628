//! Models of the catalog by the names of their files (`llama3.1_8B.yaml`).

use crate::{Found, Origin, Reading};
use shardscope_catalog as catalog;
use shardscope_config_tree::Node;
use shardscope_plan::Field;

/// A file's name without a YAML extension.
pub(super) fn without_ending(name: &str) -> &str {
    name.strip_suffix(".yaml").or(name.strip_suffix(".yml")).unwrap_or(name)
}

/// The shape of a model that the text names, if the catalog knows it.
pub(super) fn preset(reading: &mut Reading, named: &Node, name: &str) {
    let name = without_ending(name);
    let Some((known, settings)) = known_model(name) else { return };
    for (field, value) in settings {
        if !reading.found.iter().any(|found| found.field == field) {
            let found = Found::new(field, value, Origin::Catalog).by("model", Some(named.span));
            reading.take(found.note(format!("{known}, named as {}", named.word().unwrap_or(name))));
        }
    }
}

/// A catalog model by a file's name: `llama3.1_8B`, `deepseek_v2_lite`.
pub fn known_model(name: &str) -> Option<(&'static str, Vec<(Field, String)>)> {
    let dashed = name.replace('_', "-");
    let mut spaced = String::new();
    let mut letters = dashed.chars().peekable();
    let mut first_digit = true;
    while let Some(letter) = letters.next() {
        spaced.push(letter);
        if first_digit && letter.is_ascii_alphabetic() && letters.peek().is_some_and(char::is_ascii_digit) {
            spaced.push('-');
            first_digit = false;
        }
    }
    catalog::model(&dashed).or_else(|| catalog::model(&spaced))
}
