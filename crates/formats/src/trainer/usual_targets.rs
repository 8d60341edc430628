//! The modules that PEFT adapts where nothing names them: a table by model type
//! (`peft/utils/constants.py:TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING`, PEFT 0.21), most of whose decoders have
//! q_proj and v_proj. For a type without a row `peft/tuners/lora/model.py` raises an error.

use super::dialect::Dialect;
use crate::leaves::Leaves;
use crate::{Asked, Found, Origin, Question};
use shardscope_catalog as catalog;
use shardscope_plan::Field;

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

/// The types of models whose rows in the catalog have none.
fn by_name(name: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 9] = [
        ("phi-1", "phi"),
        ("phi-2", "phi"),
        ("phi-3", "phi3"),
        ("phi-4", "phi3"),
        ("qwen3-30b-a3b", "qwen3_moe"),
        ("qwen3-235b-a22b", "qwen3_moe"),
        ("deepseek-v2", "deepseek_v2"),
        ("deepseek-v3", "deepseek_v3"),
        ("deepseek-r1", "deepseek_v3"),
    ];
    // Qwen's and Llama's layers.
    let distilled = name.contains("distill");
    STARTS.iter().find(|(start, _)| name.starts_with(start) && !distilled).map(|(_, word)| *word)
}

/// The type of a model of the catalog; of those under short names, which have none, by the name.
fn model_type(model: &str) -> Option<String> {
    let known = catalog::find(model.trim_end_matches('/')).model()?;
    if let Some(read) = known.architecture() {
        return Some(read.model_type);
    }
    let name = known.name().to_ascii_lowercase();
    by_name(&name).map(str::to_owned)
}

/// States or asks for them.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // The others name them.
    let is_peft = matches!(dialect, Dialect::Transformers | Dialect::Trl);
    let stated = leaves.reading.found.iter().any(|found| found.field == Field::LoraTargetModules);
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
