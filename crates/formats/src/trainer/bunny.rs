//! Bunny's arguments (`bunny/train/train.py`, BAAI-DCAI/Bunny at 08273acbd83b): LLaVA's with a tower and a decoder by kinds of its own.

use super::{llava, tinyllava, towers};
use crate::Origin;
use crate::leaves::Leaves;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

/// Its kinds of decoders, and whether their attention is PyTorch's kernel, which transformers chooses for classes that have
/// it (`bunny/model/language_model`, of which the others' write it out, or scale what layers add).
const KINDS: [(&str, bool); 7] = [
    ("phi-1.5", false),
    ("phi-2", false),
    ("phi-3", false),
    ("stablelm-2", false),
    ("minicpm", false),
    ("qwen1.5-1.8b", true),
    ("llama3-8b", true),
];
/// Keys of a vision model that this module reads.
const OURS: [&str; 3] = ["vision_tower", "pretrain_mm_mlp_adapter", "tune_mm_mlp_adapter"];
/// Sizes of SigLIP's layers, which puts no token before an image's patches.
const SIGLIP: &str = "heads=16 f=4304";
const WHOSE: &str = "default of Bunny";

fn kind(leaves: &Leaves<'_>) -> Option<(&'static str, bool)> {
    let kind = leaves.text("model_type")?;
    KINDS.into_iter().find(|(known, _)| *known == kind)
}

/// Whether the arguments are its own.
pub(super) fn is_own(leaves: &Leaves<'_>) -> bool {
    leaves.has("vision_tower") && !leaves.has("mm_vision_select_layer") && kind(leaves).is_some()
}

/// Reads them; returns whether they are its own with a known tower.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    let Some((_, has_kernel)) = kind(leaves).filter(|_| is_own(leaves)) else { return false };
    let Some(said) = leaves.get("vision_tower") else { return false };
    // The class is chosen by parts of the whole path (`multimodal_encoder/builder.py`).
    let path = said.value.to_ascii_lowercase();
    let other = if path.contains("sig") {
        "siglip"
    } else if path.contains("eva") {
        "eva"
    } else {
        "clip"
    };
    let Some(tower) = towers::named(&said.value).filter(|tower| tower.class == (other == "clip")) else {
        return false;
    };
    let layers = towers::projector_layers(leaves.text("mm_projector_type").unwrap_or("mlp2x_gelu"));
    let mut odd = (!has_kernel).then_some("model_type");
    for key in ["freeze_backbone", "freeze_mm_mlp_adapter"] {
        odd = odd.or(leaves.yes(key).map(|_| key));
    }
    let frozen = leaves.yes("tune_mm_mlp_adapter");
    let adapts = leaves.yes("lora_enable").is_some();
    if frozen.is_some() && (adapts || leaves.reading.value(Field::BaseQuantization).is_some()) {
        odd = odd.or(Some("tune_mm_mlp_adapter"));
    }
    odd = odd.or((layers.is_none()).then_some("mm_projector_type"));
    odd = odd.or((!towers::runs_in_half(leaves)).then_some("bf16"));
    let odd = odd.map(|key| (key.to_owned(), leaves.text(key).unwrap_or("its default").to_owned()));
    let what =
        "Bunny with other parts, a dtype, or a decoder whose attention it writes out, that is not modelled";
    towers::settle(leaves, &OURS, odd, what);
    let note = "of the tower and the projector that Bunny builds";
    // A class token is left out; without one, every token is a patch (`siglip_encoder.py:feature_select`).
    towers::state(leaves, tower, tower.tokens - u64::from(tower.class), said, note);
    if !tower.class {
        leaves.state(Field::VisionKept, SIGLIP, Origin::Derived, note);
    }
    leaves.state(Field::ProjectorLayers, &layers.unwrap_or(0).to_string(), Origin::Derived, note);
    llava::trains(leaves, frozen, WHOSE);
    for key in ["version", "freeze_backbone", "freeze_mm_mlp_adapter"] {
        leaves.pass(key);
    }
    let message = "Bunny has decoders of its own, of about transformers 4.40; what they save is counted as in transformers 5";
    leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(said.span));
    true
}

/// Whether the program is one whose rank of adapters is known: LLaVA, or made of it.
pub(super) fn has_own_rank(leaves: &Leaves<'_>) -> bool {
    leaves.has("mm_vision_select_layer") || tinyllava::is_own(leaves) || is_own(leaves)
}
