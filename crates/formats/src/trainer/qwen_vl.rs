//! Programs for Qwen's vision models. Qwen's own (`qwen-vl-finetune/qwenvl/train/train_qwen.py`, `argument.py`):
//! three switches select the parts that train, and nothing trains without them; adapters are in attention and
//! everything else is frozen. And 2U1's Qwen2-VL-Finetune (`src/train/train_sft.py`, `src/params.py`): three switches
//! select the parts that are frozen.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, DEEP, PROJECTOR, TOWER};

/// Its switches and the part that each trains (`train_qwen.py:set_model`).
const SWITCHES: [(&str, &str); 3] =
    [("tune_mm_vision", TOWER), ("tune_mm_mlp", PROJECTOR), ("tune_mm_llm", DECODER)];
const WHY: &str = "default of Qwen's train_qwen.py";
/// Most pixels of an image, 576 squares of 28 by 28.
const IMAGE_PIXELS: &str = "451584";

/// 2U1's switches and the part that each freezes (`train_sft.py:configure_vision_tower`).
const SERIES: [(&str, &str); 3] =
    [("freeze_vision_tower", TOWER), ("freeze_merger", PROJECTOR), ("freeze_llm", DECODER)];
/// The switch by which its arguments are recognized.
const SERIES_SIGN: &str = "freeze_merger";
const SERIES_WHY: &str = "default of Qwen2-VL-Finetune";
/// `qwen-vl-finetune/README.md`.
const QWEN_VERSION: &str =
    "Qwen's program requires transformers 4.57, whose hook reaches only word embeddings";
/// `requirements.txt`.
const SERIES_VERSION: &str =
    "Qwen2-VL-Finetune requires transformers 4.56.1, whose hook reaches only word embeddings";

/// The first of its switches, by which its arguments are recognized.
fn first<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    SWITCHES.iter().find_map(|(key, _)| leaves.get(key))
}

/// Its defaults, before adapters are read.
pub(super) fn defaults(leaves: &mut Leaves<'_>) {
    if first(leaves).is_none() {
        return series_defaults(leaves);
    }
    let adapts = leaves.yes("lora_enable").is_some();
    let adapters: &[(Field, &str)] = if adapts {
        &[
            (Field::LoraRank, "64"),
            (Field::LoraAlpha, "128"),
            (Field::LoraDropout, "0.05"),
            (Field::LoraTargetModules, "q_proj k_proj v_proj o_proj"),
        ]
    } else {
        &[]
    };
    leaves.state_all(adapters, Origin::Default, WHY);
    leaves.state_all(
        &[
            (Field::AttnImplementation, "flash_attention_2"),
            (Field::SeqLength, "512"),
            (Field::ImagePixels, IMAGE_PIXELS),
        ],
        Origin::Default,
        WHY,
    );
    for key in ["data_flatten", "data_packing"] {
        if let Some(leaf) = leaves.yes(key) {
            leaves.switch(Field::Packing, true, leaf);
        }
    }
}

/// Reads which parts are frozen; returns whether these are its arguments.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    let Some(said) = first(leaves) else { return false };
    leaves.state(Field::VisionInputGrads, "false", Origin::Default, QWEN_VERSION);
    if leaves.yes("lora_enable").is_some() {
        let parts = format!("{TOWER} {PROJECTOR}");
        leaves.say(Field::FrozenModules, &parts, said);
        return true;
    }
    let [tower, projector, decoder] = SWITCHES.map(|(key, _)| leaves.yes(key).is_some());
    // `lm_head.requires_grad` is set on the module, so that its weights train anyway.
    if !decoder {
        lack(leaves, said, "an output layer trained with a frozen decoder");
    }
    let parts = SWITCHES.iter().zip([tower, projector, decoder]);
    let mut frozen: Vec<&str> = parts.filter(|(_, trains)| !trains).map(|((_, part), _)| *part).collect();
    // The switch covers only `visual.merger`.
    if !tower && projector {
        frozen.push(DEEP);
    }
    let frozen = if frozen.is_empty() { "none".to_owned() } else { frozen.join(" ") };
    leaves.say(Field::FrozenModules, &frozen, said);
    true
}

/// The defaults of 2U1's program.
fn series_defaults(leaves: &mut Leaves<'_>) {
    if !leaves.has(SERIES_SIGN) {
        return;
    }
    series_adapters(leaves);
    let kernel = if leaves.yes("disable_flash_attn2").is_some() { "sdpa" } else { "flash_attention_2" };
    leaves.pass("disable_flash_attn2");
    leaves.state(Field::AttnImplementation, kernel, Origin::Default, SERIES_WHY);
    if !leaves.has("use_liger") {
        leaves.state(Field::LigerKernel, "true", Origin::Default, SERIES_WHY);
    }
    if leaves.flag("use_liger") != Some(false) {
        // `apply_liger_kernel_to_qwen2_5_vl()` and similar calls before the model is built.
        leaves.state(
            Field::VisionLiger,
            "class",
            Origin::Derived,
            "classes are patched before the model is built",
        );
    }
}

/// The adapters of 2U1's program (`train_sft.py:find_target_linear_names`): all linear layers and the embedding by their
/// full names, except where a name has one of the given parts, and those of the tower without `vision_lora`.
fn series_adapters(leaves: &mut Leaves<'_>) {
    const OUTSIDE: [&str; 2] = ["lm_head", "embed_tokens"];
    let excluded = leaves.text("lora_namespan_exclude").unwrap_or_default();
    let only_layers = OUTSIDE.iter().all(|name| excluded.contains(name));
    let others = excluded
        .split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_' && sign != '.')
        .any(|name| !name.is_empty() && !OUTSIDE.contains(&name) && name != "visual");
    let last = leaves.whole("num_lora_modules").is_some_and(|count| count > 0);
    let top = ["unfreeze_topk_llm", "unfreeze_topk_vision"];
    let further = top.iter().any(|key| leaves.whole(key).is_some_and(|count| count > 0));
    for key in ["lora_namespan_exclude", "num_lora_modules", "vision_lora"].iter().chain(&top) {
        leaves.pass(key);
    }
    let Some(said) = leaves.yes("lora_enable") else { return };
    if !only_layers || others || last || further {
        let what =
            "adapters on the embedding or the output layer, or on some of the layers (Qwen2-VL-Finetune)";
        return lack(leaves, said, what);
    }
    leaves.state_all(
        &[
            (Field::LoraRank, "64"),
            (Field::LoraAlpha, "16"),
            (Field::LoraDropout, "0.05"),
            (Field::LoraTargetModules, "all-linear"),
            (Field::VisionAdapters, if leaves.yes("vision_lora").is_some() { "true" } else { "false" }),
        ],
        Origin::Default,
        SERIES_WHY,
    );
}

/// Reads which parts 2U1's program freezes; returns whether these are its arguments.
pub(super) fn read_series(leaves: &mut Leaves<'_>) -> bool {
    let Some(said) = leaves.get(SERIES_SIGN) else { return false };
    if leaves.yes("lora_enable").is_some() {
        return frozen_beside_adapters(leaves, said);
    }
    let mut frozen: Vec<&str> =
        SERIES.iter().filter(|(key, _)| leaves.yes(key).is_some()).map(|(_, part)| *part).collect();
    // The deepstack mergers are switched together with the main one.
    if frozen.contains(&PROJECTOR) && !frozen.contains(&TOWER) {
        frozen.push(DEEP);
    }
    let frozen = if frozen.is_empty() { "none".to_owned() } else { frozen.join(" ") };
    leaves.say(Field::FrozenModules, &frozen, said);
    leaves.state(Field::VisionInputGrads, "false", Origin::Default, SERIES_VERSION);
    true
}

/// Beside adapters the program lets tower and merger train again that it does not freeze (`train_sft.py:train`).
fn frozen_beside_adapters(leaves: &mut Leaves<'_>, said: &Leaf) -> bool {
    leaves.state(Field::VisionInputGrads, "false", Origin::Default, SERIES_VERSION);
    if leaves.yes("vision_lora").is_some() {
        // Only `freeze_vision_tower` is forced there: a merger that is not frozen trains, adapters or not.
        if leaves.flag("freeze_merger") != Some(true) {
            let what = "a merger that trains beside its adapters (Qwen2-VL-Finetune)";
            leaves
                .reading
                .not_modelled
                .push(NotModelled::new(&said.path, &said.value, Effect::Model, what).at_some(said.span));
        }
        return true;
    }
    let frozen = |key: &str| leaves.flag(key) == Some(true);
    let parts = match (frozen("freeze_vision_tower"), frozen("freeze_merger")) {
        (true, true) => format!("{TOWER} {PROJECTOR} {DEEP}"),
        (true, false) => TOWER.to_owned(),
        // Everything below `visual` trains, the merger included.
        (false, _) => "none".to_owned(),
    };
    leaves.say(Field::FrozenModules, &parts, said);
    true
}

fn lack(leaves: &mut Leaves<'_>, said: &Leaf, what: &str) {
    let item = NotModelled::new(&said.path, &said.value, Effect::Model, what).at_some(said.span);
    leaves.reading.not_modelled.push(item);
}
