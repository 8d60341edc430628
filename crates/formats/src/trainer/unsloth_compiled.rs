//! Models that unsloth's `FastModel` and `FastVisionModel` load: transformers' modules, with each
//! decoder layer compiled as one region (`unsloth/models/_block_compile.py`), and adapters on the parts
//! that `get_peft_model` selects.

use super::unsloth::{COMPILED, GEMMA, LIQUID, RECORDED, SHOWN, TEXT, is_compiled, is_other, named};
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DEEP, PROJECTOR, TOWER};

/// Parts of other names with that prefix: models with image or audio towers.
const WITH_TOWERS: [&str; 2] = ["-vl", "-audio"];

/// Models with three-dimensional positions, for which a causal mask is never omitted.
const THREE: [&str; 3] = ["qwen2-vl-", "qwen2.5-vl-", "qwen3-vl-"];

/// Prefixes of names of models that are neither recorded nor implemented like Llama.
const OTHERS: [&str; 15] = [
    "qwen3.5",
    "qwen3.6",
    "qwen3-next",
    "qwen3-omni",
    "muse-",
    "pixtral",
    "llama-3.2-11b-vision",
    "llama-3.2-90b-vision",
    "whisper",
    "csm-",
    "paddleocr",
    "modernbert",
    "diffusiongemma",
    "deepseek-ocr",
    "deepseek_ocr",
];

/// Names of an attention's projections, and of an MLP's, which the pattern for a decoder matches.
const ATTENTION: &str = "q_proj k_proj v_proj o_proj";
const MLP: &str = "gate_proj up_proj down_proj";

/// Keys that are read here.
const OWN: [&str; 5] = [
    "finetune_vision_layers",
    "finetune_language_layers",
    "finetune_attention_modules",
    "finetune_mlp_modules",
    "finetune_audio_layers",
];

/// Runs once the model is known.
pub(super) fn with_model(leaves: &mut Leaves<'_>) {
    if !is_compiled(leaves) {
        return;
    }
    for path in OWN {
        leaves.pass(path);
    }
    let (_, name) = named(leaves);
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let recorded = begins(&RECORDED);
    // If the name does not decide it, the model's fields do, once the model is known (`shardscope_resolve`).
    let unknown = begins(&OTHERS) || is_other(&name);
    let towers = name.starts_with(LIQUID) && WITH_TOWERS.iter().any(|word| name.contains(word));
    if unknown && !recorded || towers {
        let what = "modules compiled by unsloth, which save less than transformers' own";
        leaves.reading.not_modelled.push(NotModelled::new("unsloth", "", Effect::Memory, what));
    }
    let compiles = "unsloth compiles each layer as one region (models/_block_compile.py)";
    leaves.state(Field::CompiledLayers, "true", Origin::Derived, compiles);
    attention(leaves, name.starts_with(GEMMA), begins(&THREE));
    if let Some(leaf) = leaves.all().iter().find(is_off) {
        let what = "unsloth's checkpointing switched off in one of the two calls that take it";
        leaves.lack(leaf, Effect::Memory, what);
    }
    if leaves.reading.value(Field::ModulesToSave).is_some() {
        let what = "an embedding and output layer trained with layers that unsloth compiles";
        leaves.reading.not_modelled.push(NotModelled::new("modules_to_save", "", Effect::Memory, what));
    }
    if matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        parts(leaves);
    }
}

fn is_off(leaf: &&Leaf) -> bool {
    leaf.path == "use_gradient_checkpointing" && leaf.flag() == Some(false)
}

/// Gemma 3 uses flex attention, which saves the same as flash attention except for the random number generator's state,
/// whose 16 bytes are counted; the others use SDPA, where micro-batches without padding, or with padding only at the
/// end, have no mask unless positions have three dimensions
/// (`unsloth_zoo/temporary_patches/misc.py:_maskless_causal_arguments`).
fn attention(leaves: &mut Leaves<'_>, flex: bool, masked: bool) {
    let chosen = [Field::AttnImplementation, Field::PaddingMask];
    leaves.reading.keep(&|found| !chosen.contains(&found.field));
    let rule = "unsloth/models/_utils.py:resolve_attention_implementation";
    if flex {
        leaves.state(Field::AttnImplementation, "flex_attention", Origin::Derived, rule);
        leaves.state(Field::AttentionKernel, "flash", Origin::Derived, "flex_attention keeps what it does");
        leaves.state(Field::PaddingMask, "false", Origin::Derived, "flex_attention's masks are of blocks");
    } else {
        leaves.state(Field::AttnImplementation, "sdpa", Origin::Derived, rule);
        let why = "unsloth leaves a mask out that is causal alone, unless positions have three dimensions";
        let word = if masked { "true" } else { "false" };
        leaves.state(Field::PaddingMask, word, Origin::Derived, why);
    }
}

/// Which parts of the model have adapters (`unsloth_zoo/peft_utils.py:get_peft_regex`): linear layers of
/// attention and MLP in the decoder, in the vision tower, or in both. Its pattern does not match the
/// projector from images to the decoder.
fn parts(leaves: &mut Leaves<'_>) {
    let target = leaves.get("target_modules").filter(|leaf| !leaf.value.is_empty());
    let all = target.is_some_and(|leaf| leaf.value == "all-linear");
    let flag = |path: &str, default: bool| all || leaves.flag(path).unwrap_or(default);
    let [language, attention, mlp] = [OWN[1], OWN[2], OWN[3]].map(|path| flag(path, true));
    // `FastLanguageModel.get_peft_model` leaves a tower without adapters by default (`models/llama.py`).
    let vision = flag(OWN[0], leaves.has(COMPILED) || named(leaves).1.starts_with(LIQUID));
    let audio = leaves.flag(OWN[4]) == Some(true);
    let scoped = !(vision && language && attention && mlp);
    if !language || audio {
        let what = "adapters on an audio tower, or only on a vision tower";
        leaves.reading.not_modelled.push(NotModelled::new(OWN[1], "", Effect::Model, what));
    }
    if vision && scoped {
        let what = "adapters on some of the vision tower's layers";
        leaves.reading.not_modelled.push(NotModelled::new(OWN[0], "", Effect::Model, what));
    }
    let named = target.filter(|_| !all);
    let parts = [(attention, ATTENTION), (mlp, MLP)].into_iter().filter(|(adapted, _)| *adapted);
    let names = parts.map(|(_, names)| names).collect::<Vec<_>>().join(" ");
    let rule =
        "linear layers that get_peft_model's pattern matches (unsloth_zoo/peft_utils.py:get_peft_regex)";
    match named {
        None => {
            leaves.reading.keep(&|found| found.field != Field::LoraTargetModules);
            leaves.state(Field::LoraTargetModules, &names, Origin::Derived, rule);
        }
        // A module has an adapter only if both select it.
        Some(leaf) if scoped && !(attention && mlp) => {
            let what = "adapters selected by module name and by kind at once";
            leaves.lack(leaf, Effect::Model, what);
        }
        // Modules of the tower may have these names, too; this is checked once the model is known.
        Some(_) if vision => return,
        Some(_) => {}
    }
    leaves.reading.keep(&|found| found.field != Field::FrozenModules);
    if vision {
        let frozen = format!("{PROJECTOR} {DEEP}");
        leaves.state(Field::FrozenModules, &frozen, Origin::Derived, rule);
        leaves.state(Field::VisionAdapters, "true", Origin::Derived, rule);
    } else {
        let frozen = format!("{TOWER} {PROJECTOR} {DEEP}");
        leaves.state(Field::FrozenModules, &frozen, Origin::Derived, rule);
        let why = "unsloth hooks the first module that trains, behind the tower";
        leaves.state(Field::VisionInputGrads, "false", Origin::Derived, why);
        // Rollouts take their prompts from a dataset.
        let policy = leaves.reading.value(Field::TrainingObjective) == Some("policy");
        if leaves.text(SHOWN) == Some(TEXT) && !policy {
            let why = "the program trains on text: it names no images or videos";
            leaves.state(Field::ImagePatches, "0", Origin::Derived, why);
        }
    }
}
