//! InternVL's arguments (`internvl_chat/internvl/train/internvl_chat_finetune.py`, OpenGVLab/InternVL at 2410d1dbf208): a tower, a
//! projector (`mlp1`) and a decoder that switches freeze one by one, and adapters on the decoder.

use super::towers;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, PROJECTOR, TOWER};
use shardscope_source::{Code, Diagnostic};

/// The argument that each of its commands has.
const SIGN: &str = "conv_style";
/// Arguments of its own (`ModelArguments`, `DataTrainingArguments`), of which each of its commands has some: LLaVA's programs and others
/// also name a style of conversation.
const OWN: [&str; 11] = [
    "force_image_size",
    "down_sample_ratio",
    "freeze_backbone",
    "ps_version",
    "use_llm_lora",
    "use_backbone_lora",
    "unfreeze_vit_layers",
    "vision_select_layer",
    "max_dynamic_patch",
    "dynamic_image_size",
    "use_packed_ds",
];
/// Arguments beside it that other programs have (Eagle 2.5), or that put a model together of others.
const OTHERS: [&str; 6] = [
    "vision_path",
    "llm_path",
    "max_dynamic_tiles",
    "use_online_packing",
    "use_pixel_shuffle",
    "mlp_connector_layers",
];
/// Its switches and the part that each freezes.
const SWITCHES: [(&str, &str); 3] =
    [("freeze_backbone", TOWER), ("freeze_mlp", PROJECTOR), ("freeze_llm", DECODER)];
/// Numbers for which tower and tokens are as modelled, which are the defaults.
const AS_MODELLED: [(&str, &str); 3] =
    [("force_image_size", "448"), ("down_sample_ratio", "0.5"), ("vision_select_layer", "-1")];
/// Switches and counts that stop the verdict where they are on, and change nothing where they are not.
const OFF: [&str; 3] = ["use_backbone_lora", "unfreeze_vit_layers", "unfreeze_lm_head"];
const PACKS: &str = "use_packed_ds";
/// Side of a tile, in pixels.
const SIDE: u64 = 448;
/// Patches of it, of 14 by 14 pixels.
const PATCHES: u64 = 32 * 32;
/// Tiles of a pack (`num_images_expected`).
const TILES_OF_A_PACK: u64 = 40;
/// Tiles of an image at most, beside one of the whole (`max_dynamic_patch`).
const TILES: u64 = 12;
/// The most tiles that are taken at their word.
const MOST_TILES: u64 = 1 << 20;
const WHOSE: &str = "default of InternVL's program";

/// Whether the arguments are its own.
fn is_own(leaves: &Leaves<'_>) -> bool {
    let any = |keys: &[&str]| keys.iter().any(|key| leaves.has(key));
    leaves.has(SIGN) && leaves.has("model_name_or_path") && any(&OWN) && !any(&OTHERS)
}

/// The leaf that turns adapters on the decoder on: their rank.
fn adapts<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    leaves.get("use_llm_lora").filter(|leaf| leaf.hole.is_some() || leaf.whole().is_some_and(|rank| rank > 0))
}

/// The leaf that says that samples are packed.
fn packs<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    leaves.yes(PACKS)
}

/// The length of a pack in the place of a sample's, and its tiles: no pack has more tokens or tiles, and with `strict_mode`
/// each has as many (`internvl/train/dataset_packed.py:PackedDataset`).
fn packed(leaves: &mut Leaves<'_>) {
    leaves.reading.keep(&|found| found.field != Field::SeqLength);
    if let Some(leaf) = leaves.get("max_packed_tokens") {
        leaves.say(Field::SeqLength, &leaf.value, leaf);
    }
    let stated = leaves.get("num_images_expected");
    if let Some(leaf) = stated.filter(|leaf| leaf.whole().is_none()) {
        stop(leaves, leaf, "packs of an unknown number of tiles (InternVL)");
    }
    let tiles = stated.and_then(Leaf::whole).unwrap_or(TILES_OF_A_PACK).min(MOST_TILES);
    let patches = (tiles * PATCHES).to_string();
    leaves.state(
        Field::ImagePatches,
        &patches,
        Origin::Derived,
        "the most tiles that the program puts into a pack",
    );
    leaves.state(Field::Packing, "true", Origin::Derived, "samples are packed");
}

/// Its defaults and adapters, before adapters are read.
pub(super) fn defaults(leaves: &mut Leaves<'_>) {
    if !is_own(leaves) {
        return;
    }
    if packs(leaves).is_some() {
        packed(leaves);
    }
    let values = [
        (Field::SeqLength, "8192"),
        (Field::GradientCheckpointing, "true"),
        (Field::AttnImplementation, "flash_attention_2"),
        (Field::ParamsDtype, "bf16"),
    ];
    leaves.state_all(&values, Origin::Default, WHOSE);
    leaves.pass("use_llm_lora");
    let Some(said) = adapts(leaves) else { return };
    // `InternVLChatModel.wrap_llm_lora`: every linear layer of the decoder's layers, by its names for each kind of decoder.
    leaves.state(Field::TrainType, "lora", Origin::Derived, "a rank of adapters on the decoder is stated");
    leaves.say(Field::LoraRank, &said.value, said);
    if let Some(alpha) = said.whole().and_then(|rank| rank.checked_mul(2)) {
        leaves.say_noted(Field::LoraAlpha, &alpha.to_string(), said, "twice the rank");
    }
    let values = [
        (Field::LoraDropout, "0.05"),
        (Field::LoraTargetModules, "all-linear"),
        (Field::VisionAdapters, "false"),
    ];
    leaves.state_all(&values, Origin::Derived, "adapters that InternVL's program puts on the decoder");
}

/// Reads which parts train; returns whether the arguments are its own.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    if !is_own(leaves) {
        return false;
    }
    let Some(said) = leaves.get(SIGN) else { return false };
    let adapters = adapts(leaves).is_some();
    let switch = |key: &str| leaves.yes(key);
    let stated = SWITCHES.iter().find_map(|(key, _)| leaves.get(key));
    let mut frozen: Vec<&str> =
        SWITCHES.iter().filter(|(key, _)| switch(key).is_some()).map(|(_, part)| *part).collect();
    // PEFT freezes what has adapters, whatever the switch says.
    frozen.retain(|part| !(adapters && *part == DECODER));
    let frozen = if frozen.is_empty() { "none".to_owned() } else { frozen.join(" ") };
    // A switch that depends on something is asked about with what it decides.
    let open = SWITCHES.iter().filter_map(|(key, _)| leaves.get(key)).find(|leaf| leaf.hole.is_some());
    leaves.reading.not_modelled.retain(|item| !SWITCHES.iter().any(|(key, _)| item.name == *key));
    match (open, stated) {
        (Some(leaf), _) => leaves.say(Field::FrozenModules, &leaf.value, leaf),
        (None, Some(leaf)) => leaves.say(Field::FrozenModules, &frozen, leaf),
        (None, None) => leaves.state(Field::FrozenModules, &frozen, Origin::Default, WHOSE),
    }
    let note = "InternVL's model is a tower, a projector and a decoder";
    leaves.state(Field::VisionTower, "true", Origin::Derived, note);
    // `model.vision_model.encoder.gradient_checkpointing = True`; the hook for adapters is on words' embeddings alone.
    let values = [(Field::VisionRecompute, "true"), (Field::VisionInputGrads, "false")];
    leaves.state_all(&values, Origin::Derived, note);
    tiles(leaves);
    for key in OFF {
        if leaves.get(key).is_some_and(|leaf| leaf.flag() == Some(false) || leaf.whole() == Some(0)) {
            leaves.reading.not_modelled.retain(|item| item.name != key);
        } else if let Some(leaf) = leaves.get(key) {
            stop(leaves, leaf, what_of(key));
        }
    }
    packing(leaves);
    for (key, word) in AS_MODELLED {
        if let Some(leaf) = leaves.get(key).filter(|leaf| leaf.value.parse::<f64>().ok() != word.parse().ok())
        {
            stop(
                leaves,
                leaf,
                "InternVL with images, tokens or a layer of the tower other than its models have",
            );
        }
    }
    if let Some(leaf) = leaves.yes("use_liger") {
        stop(leaves, leaf, "Liger's kernels under a loss that InternVL computes by itself");
    }
    // InternVL 3.5's (`internvl_chat_gpt_oss`) has the same modules around decoders of transformers, of which it gives gpt-oss
    // other attention.
    let other = leaves.get("conv_style").filter(|leaf| leaf.value.contains("gpt_oss"));
    if let Some(leaf) = leaves.yes("use_custom_flash_attn").or(other) {
        stop(leaves, leaf, "gpt-oss with the attention that InternVL 3.5's program chooses");
    }
    if !towers::runs_in_half(leaves) {
        let value = leaves.text("bf16").unwrap_or("its default").to_owned();
        let item = NotModelled::new("bf16", &value, Effect::Memory, "InternVL's program in fp32");
        leaves.reading.not_modelled.push(item.at_some(said.span));
    }
    for key in ["conv_style", "ps_version", "pad2square", "normalize_type", "split_annotations"] {
        leaves.pass(key);
    }
    let message = "InternVL requires transformers 4.37.2 (3.5 a later 4) and computes its loss by itself; what its decoder and \
                   loss save is counted as in transformers 5";
    leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(said.span));
    true
}

/// Its attention takes one pack of a micro-batch (`internvl/patch/qwen2_packed_training_patch.py` and its like). Whether there are
/// several, or packs at all, an answer may say.
fn packing(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get(PACKS) else { return };
    leaves.reading.not_modelled.retain(|item| item.name != PACKS);
    let item = |what: &str| NotModelled::new(PACKS, leaf.shown(), Effect::Memory, what).at_some(leaf.span);
    let stop = if packs(leaves).is_some() {
        item("several packs of samples in a micro-batch, which InternVL's attention refuses")
            .unless_at(Field::MicroBatchSize, "1")
    } else if leaf.hole.is_some() {
        leaves.say(Field::Packing, &leaf.value, leaf);
        // A pack has other limits than a sample, which are read where the text itself turns packing on.
        item("packs where a variable turns them on (InternVL): write use_packed_ds True")
            .only_at(Field::Packing, "true")
    } else if leaf.flag() == Some(false) {
        return;
    } else {
        item("a value of use_packed_ds that is neither true nor false (InternVL)")
    };
    leaves.reading.not_modelled.push(stop);
}

const fn what_of(key: &str) -> &'static str {
    match key.as_bytes() {
        b"use_backbone_lora" => "adapters on the tower (InternVL)",
        _ => "parts that train of a model that is frozen (InternVL)",
    }
}

fn stop(leaves: &mut Leaves<'_>, leaf: &Leaf, what: &str) {
    leaves.reading.not_modelled.retain(|item| item.name != leaf.path);
    let item = NotModelled::new(&leaf.path, leaf.shown(), Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// The most pixels of an image: as many tiles as the settings let through (`internvl/train/dataset.py:dynamic_preprocess`).
fn tiles(leaves: &mut Leaves<'_>) {
    let most = leaves.whole("max_dynamic_patch").unwrap_or(TILES).clamp(1, MOST_TILES);
    let dynamic = leaves.flag("dynamic_image_size") == Some(true);
    // The image as a whole joins several tiles.
    let whole = u64::from(leaves.flag("use_thumbnail") == Some(true) && most > 1);
    let count = if dynamic { most + whole } else { 1 };
    let pixels = (count * SIDE * SIDE).to_string();
    let note = "tiles of 448 by 448 pixels, as many as the settings let through";
    leaves.state(Field::ImagePixels, &pixels, Origin::Derived, note);
    for key in ["min_dynamic_patch", "force_image_size", "down_sample_ratio", "vision_select_layer"] {
        leaves.pass(key);
    }
}
