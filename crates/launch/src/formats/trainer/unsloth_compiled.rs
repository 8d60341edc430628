//! Models that unsloth's `FastModel` and `FastVisionModel` load: transformers' modules, each decoder layer compiled as one region
//! (`unsloth/models/_block_compile.py`), beside adapters on the parts that `get_peft_model` is told of.

use super::unsloth::{is_compiled, lack, named};
use crate::formats::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DEEP, PROJECTOR, TOWER};

/// Beginnings of names of models whose layers were recorded as unsloth compiles them
/// (`tests/data/activations/unsloth_compiled.jsonl`).
const RECORDED: [&str; 4] = [GEMMA, "qwen2-vl-", "qwen2.5-vl-", "qwen3-vl-"];

/// Those that prefer flex attention (`unsloth/models/_utils.py:_FLEX_PREFERRED_MODELS`).
const GEMMA: &str = "gemma-3-";

/// Names of an attention's projections, and of an MLP's, which are those that the pattern for a decoder matches.
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

/// Once the model is known.
pub(super) fn with_model(leaves: &mut Leaves<'_>) {
    if !is_compiled(leaves) {
        return;
    }
    for path in OWN {
        leaves.pass(path);
    }
    let (_, name) = named(leaves);
    let recorded = RECORDED.iter().any(|start| name.starts_with(start));
    let layers = [
        Field::NumExperts,
        Field::MultiLatentAttention,
        Field::LinearMixer,
        Field::ModuleVariants,
        Field::UnrecordedModules,
    ];
    let other = layers.iter().any(|field| leaves.reading.value(*field).is_some_and(|said| said != "false"));
    if !recorded || other {
        let what = "modules compiled by unsloth, which save less than transformers' own";
        leaves.reading.not_modelled.push(NotModelled::new("unsloth", "", Effect::Memory, what));
    }
    let compiles = "unsloth compiles each layer as one region (models/_block_compile.py)";
    leaves.state(Field::CompiledLayers, "true", Origin::Derived, compiles);
    attention(leaves, name.starts_with(GEMMA));
    if let Some(leaf) = leaves.all().iter().find(is_off) {
        let what = "unsloth's checkpointing switched off in one of the two calls that take it";
        lack(leaves, leaf, Effect::Memory, what);
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

/// Gemma 3 attends by flex attention, which keeps what flash attention does but for the random numbers' state, whose 16 bytes are
/// counted; the others by SDPA, which is always given a mask there.
fn attention(leaves: &mut Leaves<'_>, flex: bool) {
    let chosen = [Field::AttnImplementation, Field::PaddingMask];
    leaves.reading.keep(&|found| !chosen.contains(&found.field));
    let rule = "unsloth/models/_utils.py:resolve_attention_implementation";
    if flex {
        leaves.state(Field::AttnImplementation, "flex_attention", Origin::Derived, rule);
        leaves.state(Field::AttentionKernel, "flash", Origin::Derived, "flex_attention keeps what it does");
        leaves.state(Field::PaddingMask, "false", Origin::Derived, "flex_attention's masks are of blocks");
    } else {
        leaves.state(Field::AttnImplementation, "sdpa", Origin::Derived, rule);
        let why = "transformers' modules as unsloth compiles them always get a mask";
        leaves.state(Field::PaddingMask, "true", Origin::Derived, why);
    }
}

/// Which parts of the model have adapters (`unsloth_zoo/peft_utils.py:get_peft_regex`): linear layers of attention and MLP of the
/// decoder, of the vision tower, or of both. Its pattern matches none of what projects images onto the decoder.
fn parts(leaves: &mut Leaves<'_>) {
    let target = leaves.get("target_modules").filter(|leaf| !leaf.value.is_empty());
    let all = target.is_some_and(|leaf| leaf.value == "all-linear");
    let flag = |path: &str, default: bool| all || leaves.flag(path).unwrap_or(default);
    let [vision, language, attention, mlp] = [OWN[0], OWN[1], OWN[2], OWN[3]].map(|path| flag(path, true));
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
        // Adapters stand where both select.
        Some(leaf) if scoped && !(attention && mlp) => {
            let what = "adapters selected by module name and by kind at once";
            lack(leaves, leaf, Effect::Model, what);
        }
        // Modules of the tower may have these names too, which is looked at where the model is known.
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
    }
}
