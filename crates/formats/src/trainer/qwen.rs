//! The first Qwen: QwenLM/Qwen's program, and the code in its models' repositories.

use crate::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Whether these are the arguments of QwenLM/Qwen's `finetune.py` with adapters.
fn is_finetune(leaves: &Leaves<'_>) -> bool {
    leaves.flag("use_lora") == Some(true) && leaves.has("lazy_preprocess")
}

/// Whether the model is one of those, before 1.5 brought them to transformers, and text alone.
fn is_first(leaves: &Leaves<'_>) -> bool {
    let name = leaves.text("model_name_or_path").unwrap_or_default().trim_end_matches('/');
    let last = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    last.starts_with("qwen-") && !["qwen-vl", "qwen-audio"].iter().any(|other| last.starts_with(other))
}

/// Whether their code turns the weights to bf16 whatever they are loaded in: unless the model's configuration states a format,
/// which those on the Hub do not (`modeling_qwen.py:QWenLMHeadModel.__init__`). GPUs without bf16 get fp16, which texts that train in
/// bf16 are not for.
pub(super) fn turns_to_bf16(leaves: &Leaves<'_>) -> bool {
    is_first(leaves) && leaves.reading.value(Field::Bf16) == Some("true")
}

/// Qwen's program (`finetune.py`): `LoraArguments`, GPTQ weights under adapters, and an embedding and an output layer
/// that train along with them unless the model is a chat model.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    if !is_finetune(leaves) {
        return;
    }
    let why = "default of Qwen's finetune.py";
    leaves.state_all(
        &[
            (Field::LoraRank, "64"),
            (Field::LoraAlpha, "16"),
            (Field::LoraDropout, "0.05"),
            // `c_attn`, `c_proj`, `w1` and `w2`; Qwen multiplies `w1` by an activated `w2` (`modeling_qwen.py`).
            (Field::LoraTargetModules, "c_attn c_proj gate_proj up_proj"),
        ],
        Origin::Default,
        why,
    );
    if let Some(leaf) = leaves.yes("q_lora") {
        let what = "GPTQ weights under the adapters (Qwen's finetune.py)";
        let item = NotModelled::new("q_lora", "", Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
        return;
    }
    if is_first(leaves) {
        let why = "c_attn of Qwen's own modules holds queries, keys and values";
        leaves.state(Field::FusedQkv, "true", Origin::Derived, why);
    }
    let chat =
        leaves.text("model_name_or_path").is_some_and(|name| name.to_ascii_lowercase().contains("chat"));
    if !chat {
        leaves.state(Field::ModulesToSave, "embed_tokens lm_head", Origin::Default, why);
    }
}
