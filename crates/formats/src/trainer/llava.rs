//! LLaVA's arguments (`llava/train/train.py`) in addition to those of transformers' Trainer: a frozen CLIP tower, a
//! trained projector, and a decoder that is trained, has adapters, or is frozen.

use super::{tinyllava, towers};
use crate::Origin;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, TOWER};
use shardscope_source::{Code, Diagnostic};

/// Keys of a vision model that this module reads.
const OURS: [&str; 3] = ["vision_tower", "pretrain_mm_mlp_adapter", "tune_mm_mlp_adapter"];

/// Keys with the values for which the tower, the projector and the tokens are as modelled; if the key is
/// missing, those with `true` are.
const AS_MODELLED: [(&str, &str, bool); 11] = [
    ("mm_patch_merge_type", "flat", true),
    ("mm_vision_select_feature", "patch", true),
    ("image_aspect_ratio", "pad square", true),
    ("mm_use_im_start_end", "false", true),
    ("mm_use_im_patch_token", "false", false),
    ("freeze_backbone", "false", true),
    ("freeze_mm_mlp_adapter", "false", true),
    ("unfreeze_mm_vision_tower", "false", true),
    // Keys of derived projects.
    ("mm_tunable_parts", "", true),
    ("mm_vision_tower_lr", "", true),
    ("tune_vit_from_layer", "", true),
];

/// Reads them; returns whether they are LLaVA's with a known tower.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    let Some(said) = leaves.get("vision_tower").filter(|_| !tinyllava::is_own(leaves)) else { return false };
    // Its encoder is CLIP's (`multimodal_encoder/builder.py`).
    let known = towers::named(&said.value).filter(|tower| tower.class);
    let (Some(tower), true) = (known, leaves.has("mm_vision_select_layer")) else { return false };
    let layers = towers::projector_layers(leaves.text("mm_projector_type").unwrap_or("linear"));
    let mut odd = as_not_modelled(leaves);
    if layers.is_none() {
        odd = odd.or(leaves.get("mm_projector_type").map(|leaf| (leaf.path.clone(), leaf.value.clone())));
    }
    if !towers::runs_in_half(leaves) {
        let value = leaves.text("bf16").unwrap_or("its default");
        odd = odd.or(Some(("bf16".to_owned(), value.to_owned())));
    }
    // "v0", the default, adds a padding token to the vocabulary.
    if leaves.text("version").is_none_or(|version| version == "v0") {
        odd = odd.or(Some(("version".to_owned(), "v0".to_owned())));
    }
    let frozen = leaves.yes("tune_mm_mlp_adapter");
    let adapts = leaves.yes("lora_enable").is_some();
    if frozen.is_some() && (adapts || leaves.reading.value(Field::BaseQuantization).is_some()) {
        odd = odd.or(Some(("tune_mm_mlp_adapter".to_owned(), "true".to_owned())));
    }
    let what = "LLaVA with other tokens, trained parts or a dtype that is not modelled";
    towers::settle(leaves, &OURS, odd, what);
    // The class token is left out (`clip_encoder.py:feature_select`).
    let note = "of the tower and the projector that LLaVA builds";
    towers::state(leaves, tower, tower.tokens - 1, said, note);
    leaves.state(Field::ProjectorLayers, &layers.unwrap_or(0).to_string(), Origin::Derived, note);
    state(leaves, said, frozen);
    true
}

/// The first key whose value is not modelled, and that value.
fn as_not_modelled(leaves: &Leaves<'_>) -> Option<(String, String)> {
    let odd = AS_MODELLED.iter().find(|(key, words, unsaid)| {
        leaves.text(key).map_or(!unsaid, |said| {
            let said = said.to_ascii_lowercase();
            !words.split_ascii_whitespace().any(|word| word == said)
        })
    });
    odd.map(|(key, ..)| ((*key).to_owned(), leaves.text(key).unwrap_or("its default").to_owned()))
}

fn state(leaves: &mut Leaves<'_>, tower: &Leaf, frozen: Option<&Leaf>) {
    trains(leaves, frozen, "default of LLaVA");
    for key in [
        "mm_patch_merge_type",
        "mm_vision_select_feature",
        "version",
        "freeze_backbone",
        "freeze_mm_mlp_adapter",
    ] {
        leaves.pass(key);
    }
    let message =
        "LLaVA requires transformers 4.37.2; what its decoder and loss save is counted as in transformers 5";
    leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(tower.span));
}

/// What trains, over which weights: all of it but the tower, or the projector alone. What was made of LLaVA has these defaults too.
pub(super) fn trains(leaves: &mut Leaves<'_>, frozen: Option<&Leaf>, whose: &str) {
    leaves.state(Field::SeqLength, "512", Origin::Default, whose);
    match frozen {
        Some(leaf) => leaves.say(Field::FrozenModules, &format!("{TOWER} {DECODER}"), leaf),
        None => leaves.state(Field::FrozenModules, TOWER, Origin::Derived, "only the tower is frozen"),
    }
    if matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        towers::adapters(leaves, whose);
    }
    if leaves.reading.value(Field::BaseQuantization).is_some() {
        leaves.pass("double_quant");
        let double = if leaves.flag("double_quant") == Some(false) { "false" } else { "true" };
        leaves.state(Field::DoubleQuantization, double, Origin::Default, whose);
        let why = "DeepSpeed casts what is not quantized";
        leaves.state(Field::UpcastNonQuantized, "false", Origin::Derived, why);
    }
}
