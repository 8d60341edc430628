//! The modules that PEFT adapts where nothing names them: a table by model type
//! (`peft/utils/constants.py:TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING`, PEFT 0.21), most of whose decoders have
//! q_proj and v_proj. For a type without a row `peft/tuners/lora/model.py` raises an error.

use super::dialect::Dialect;
use crate::leaves::Leaves;
use crate::projections::{model_type, of_model};
use crate::{Asked, Found, Origin, Question};
use shardscope_plan::Field;

/// The linear layers of Llama and its like.
const LLAMA: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// Types with other modules. Phi's were Wqkv, out_proj, fc1 and fc2 in 0.7, before transformers split its projections.
const OTHERS: [(&str, &str, &str); 1] =
    [("phi", "q_proj v_proj fc1 fc2", "default of PEFT for Phi since 0.11 (March 2024)")];
/// Types of decoders that 0.21 has no row for.
const WITHOUT: [&str; 14] = [
    "phi3",
    "phimoe",
    "qwen2_moe",
    "qwen3_moe",
    "qwen3_next",
    "deepseek_v2",
    "deepseek_v3",
    "olmo",
    "olmo2",
    "olmo3",
    "gpt_oss",
    "granite",
    "cohere",
    "cohere2",
];

/// Names among those stated that the model's layers have: PEFT passes over any other as long as one of them is there
/// (`peft/tuners/tuners_utils.py:inject_adapter`).
fn keep_its_own(leaves: &mut Leaves<'_>) {
    let Some(layers) = leaves.text("model_name_or_path").and_then(of_model) else { return };
    let is_targets = |found: &&mut Found| found.field == Field::LoraTargetModules;
    let Some(found) = leaves.reading.found.iter_mut().find(is_targets) else { return };
    let named: Vec<&str> = found
        .value
        .split(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | '[' | ']' | '"' | '\''))
        .filter(|name| !name.is_empty())
        .collect();
    // Llama's names alone: others may be of parts that are no linear layers of a decoder's.
    let is_there = |name: &&str| !LLAMA.contains(name) || layers.contains(name);
    let kept: Vec<&str> = named.iter().copied().filter(is_there).collect();
    if kept.is_empty() || kept.len() == named.len() {
        return;
    }
    found.value = kept.join(" ");
    found.note = Some("the others are no layers of this model".to_owned());
}

/// States or asks for them.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // The others name them.
    let is_peft = matches!(dialect, Dialect::Transformers | Dialect::Trl);
    let stated = leaves.reading.found.iter().any(|found| found.field == Field::LoraTargetModules);
    if stated && !matches!(dialect, Dialect::Unsloth | Dialect::UnslothArguments) {
        keep_its_own(leaves);
    }
    if !is_peft || stated || !matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        return;
    }
    let Some(kind) = leaves.text("model_name_or_path").and_then(model_type) else { return };
    if let Some((_, modules, why)) = OTHERS.iter().find(|(word, ..)| *word == kind) {
        return leaves.state(Field::LoraTargetModules, modules, Origin::Default, why);
    }
    if WITHOUT.contains(&kind.as_str()) {
        let mut found = Found::new(Field::LoraTargetModules, String::new(), Origin::Script);
        found.hole = Some("target_modules of LoraConfig".to_owned());
        leaves.reading.take(found);
        leaves.reading.questions.push(Question {
            asks: Asked::Setting(Field::LoraTargetModules),
            prompt: format!(
                "Which modules get adapters? PEFT has no default for {kind} models and raises an error unless \
                 target_modules says it"
            ),
            choices: Vec::new(),
            proposal: Some("all-linear".to_owned()),
        });
    }
}
