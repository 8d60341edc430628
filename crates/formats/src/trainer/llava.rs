//! LLaVA's arguments (`llava/train/train.py`) in addition to those of transformers' Trainer: a frozen CLIP tower, a
//! trained projector, and a decoder that is trained, has adapters, or is frozen.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, TOWER};
use shardscope_source::{Code, Diagnostic};

/// A tower by name, with its number of parameters and the patches of an image. Both have 24 layers of width 1,024;
/// counted by transformers' `CLIPVisionModel` (`tests/data/activations/llava.tsv`).
const TOWERS: [(&str, &str, &str); 2] =
    [("clip-vit-large-patch14", "303179776", "256"), ("clip-vit-large-patch14-336", "303507456", "576")];
const LAYERS: &str = "24";
const LAYER: &str = "12596224";
const WIDTH: &str = "1024";

/// Keys of a vision model that this module reads.
const OURS: [&str; 3] = ["vision_tower", "pretrain_mm_mlp_adapter", "tune_mm_mlp_adapter"];

/// Keys with the values for which the tower, the projector and the tokens are as modelled; if the key is
/// missing, those with `true` are.
const AS_MODELLED: [(&str, &str, bool); 12] = [
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
    ("bf16", "true", false),
];

/// Reads them; returns whether they are LLaVA's with a known tower.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    let Some(tower) = leaves.get("vision_tower") else { return false };
    let named = tower.value.rsplit('/').next().unwrap_or_default();
    let known = TOWERS.iter().find(|(name, ..)| *name == named);
    let (Some((_, parameters, patches)), true) = (known, leaves.has("mm_vision_select_layer")) else {
        return false;
    };
    let layers = match leaves.text("mm_projector_type").unwrap_or("linear") {
        "linear" => 1,
        other => other
            .strip_prefix("mlp")
            .and_then(|rest| rest.strip_suffix("x_gelu"))
            .and_then(|depth| depth.parse::<u64>().ok())
            .unwrap_or(0),
    };
    let mut odd = as_not_modelled(leaves);
    if layers == 0 {
        odd = odd.or(leaves.get("mm_projector_type").map(|leaf| (leaf.path.clone(), leaf.value.clone())));
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
    leaves.reading.not_modelled.retain(|item| !OURS.contains(&&*item.name));
    if let Some((name, value)) = odd {
        let what = "LLaVA with other tokens, trained parts or a dtype that is not modelled";
        let item = NotModelled::new(&name, &value, Effect::Model, what).at_some(tower.span);
        leaves.reading.not_modelled.push(item);
    }
    state(leaves, tower, frozen, [parameters, patches, &layers.to_string()]);
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

fn state(
    leaves: &mut Leaves<'_>,
    tower: &Leaf,
    frozen: Option<&Leaf>,
    [parameters, patches, layers]: [&str; 3],
) {
    leaves.switch(Field::VisionTower, true, tower);
    let sizes = [
        (Field::VisionParameters, parameters),
        (Field::VisionLayers, LAYERS),
        (Field::VisionLayerParameters, LAYER),
        (Field::VisionHiddenSize, WIDTH),
        (Field::VisionPatches, "1"),
        (Field::ImagePatches, patches),
        (Field::ProjectorLayers, layers),
        // Its forward pass is under no_grad (`clip_encoder.py:CLIPVisionTower.forward`).
        (Field::VisionInputGrads, "false"),
    ];
    leaves.state_all(&sizes, Origin::Derived, "of the tower and the projector that LLaVA builds");
    leaves.state(Field::SeqLength, "512", Origin::Default, "default of LLaVA");
    match frozen {
        Some(leaf) => leaves.say(Field::FrozenModules, &format!("{TOWER} {DECODER}"), leaf),
        None => leaves.state(Field::FrozenModules, TOWER, Origin::Derived, "LLaVA freezes only the tower"),
    }
    if matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        let defaults = [
            (Field::LoraRank, "64"),
            (Field::LoraAlpha, "16"),
            (Field::LoraDropout, "0.05"),
            (Field::LoraTargetModules, "all-linear"),
        ];
        // These replace PEFT's own defaults.
        leaves.reading.keep(&|found| {
            found.origin != Origin::Default || !defaults.iter().any(|(field, _)| *field == found.field)
        });
        leaves.state_all(&defaults, Origin::Default, "default of LLaVA");
    }
    if leaves.reading.value(Field::BaseQuantization).is_some() {
        leaves.pass("double_quant");
        let double = if leaves.flag("double_quant") == Some(false) { "false" } else { "true" };
        leaves.state(Field::DoubleQuantization, double, Origin::Default, "default of LLaVA");
        let why = "DeepSpeed casts what is not quantized";
        leaves.state(Field::UpcastNonQuantized, "false", Origin::Derived, why);
    }
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
