//! What a program does to the model by itself, beside what its arguments say.

use super::options::Options;
use crate::Effect;

/// Ways of changing a model, told by what stands in a line.
const HANDS: [(&[&str], Effect, &str); 3] = [
    (
        &[".requires_grad_(", ".requires_grad = "],
        Effect::Model,
        "parts of the model that the program itself freezes or trains",
    ),
    (
        &["module.to(", "param.data.to(", "param.to("],
        Effect::Memory,
        "parts of the model that the program itself casts to another type",
    ),
    (&["model.lm_head = "], Effect::Memory, "an output layer of the program's own"),
];

/// The first thing of each kind that it does, as far as conditions on its options let it; `adapted`: adapters train, beside which the
/// rest is frozen anyway.
pub(super) fn of_its_own<'a>(
    text: &'a str,
    options: &Options<'_>,
    adapted: bool,
) -> Vec<(&'a str, Effect, &'static str)> {
    /// Lines whose conditions are looked at.
    const LOOKED_AT: usize = 64;
    let mut found: Vec<(&str, Effect, &str)> = Vec::new();
    let (mut at, mut looked) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        let words = line.split('#').next().unwrap_or_default().trim();
        for (signs, effect, what) in HANDS {
            let Some(sign) = signs.iter().find(|sign| words.contains(**sign)) else { continue };
            if found.iter().any(|(_, _, known)| *known == what) {
                continue;
            }
            // A hook on the input of the first layer, which checkpointing over frozen weights needs.
            let hook = words.contains("output.requires_grad_") || words.contains("def ");
            let freezes = words.ends_with("False") || words.contains("requires_grad_(False)");
            if hook || freezes && adapted {
                continue;
            }
            looked += 1;
            if looked <= LOOKED_AT && options.runs(text, start, at) == Some(false) {
                continue;
            }
            found.push((sign.trim_matches(['.', '(', ' ', '=']), effect, what));
        }
    }
    found
}
