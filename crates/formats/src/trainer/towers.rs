//! Published vision towers that programs load by name beside a decoder, and what follows from them where they are frozen.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// A tower as transformers builds it, counted by `CLIPVisionModel` and `SiglipVisionModel` with the sizes of its
/// configuration (`tests/data/activations/llava.tsv`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Tower {
    /// The last part of its name.
    name: &'static str,
    /// All its parameters, SigLIP's pooling head among them, which no program here runs and each of them holds.
    parameters: &'static str,
    layers: &'static str,
    layer: &'static str,
    width: &'static str,
    /// Tokens that it makes of one image, a class token among them.
    pub(super) tokens: u64,
    /// Whether it has a class token, as CLIP's have.
    pub(super) class: bool,
}

const TOWERS: [Tower; 3] = [
    Tower {
        name: "clip-vit-large-patch14",
        parameters: "303179776",
        layers: "24",
        layer: "12596224",
        width: "1024",
        tokens: 257,
        class: true,
    },
    Tower {
        name: "clip-vit-large-patch14-336",
        parameters: "303507456",
        layers: "24",
        layer: "12596224",
        width: "1024",
        tokens: 577,
        class: true,
    },
    Tower {
        name: "siglip-so400m-patch14-384",
        parameters: "428225600",
        layers: "27",
        layer: "15239504",
        width: "1152",
        tokens: 729,
        class: false,
    },
];

/// The tower that a path or a name on the Hub ends with.
pub(super) fn named(path: &str) -> Option<&'static Tower> {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    TOWERS.iter().find(|tower| tower.name == name)
}

/// The number of linear layers of a projector by LLaVA's names of them: `linear`, or `mlp2x_gelu` with any number.
pub(super) fn projector_layers(kind: &str) -> Option<u64> {
    let depth = || kind.strip_prefix("mlp")?.strip_suffix("x_gelu")?.parse::<u64>().ok();
    if kind == "linear" { Some(1) } else { depth().filter(|depth| *depth > 0) }
}

/// States a frozen tower, of whose tokens `patches` become tokens of the decoder, before a projector that trains.
pub(super) fn state(leaves: &mut Leaves<'_>, tower: &Tower, patches: u64, said: &Leaf, note: &str) {
    leaves.switch(Field::VisionTower, true, said);
    let patches = patches.to_string();
    let sizes = [
        (Field::VisionParameters, tower.parameters),
        (Field::VisionLayers, tower.layers),
        (Field::VisionLayerParameters, tower.layer),
        (Field::VisionHiddenSize, tower.width),
        (Field::VisionPatches, "1"),
        (Field::ImagePatches, patches.as_str()),
        // Nothing that goes in requires a gradient, and the hook of checkpointing is on the decoder's embedding alone.
        (Field::VisionInputGrads, "false"),
    ];
    leaves.state_all(&sizes, Origin::Derived, note);
}

/// Defaults of adapters that LLaVA and what was made of it have in common, in place of PEFT's own.
pub(super) fn adapters(leaves: &mut Leaves<'_>, whose: &str) {
    let defaults = [
        (Field::LoraRank, "64"),
        (Field::LoraAlpha, "16"),
        (Field::LoraDropout, "0.05"),
        (Field::LoraTargetModules, "all-linear"),
    ];
    leaves.reading.keep(&|found| {
        found.origin != Origin::Default || !defaults.iter().any(|(field, _)| *field == found.field)
    });
    leaves.state_all(&defaults, Origin::Default, whose);
}

/// Whether the program runs in 16 bits, to which DeepSpeed casts decoder, tower and projector alike
/// (`deepspeed/runtime/engine.py:_configure_distributed_model`).
pub(super) fn runs_in_half(leaves: &Leaves<'_>) -> bool {
    [Field::Bf16, Field::Fp16].iter().any(|field| leaves.reading.value(*field) == Some("true"))
}

/// Stops at `name`, in place of what the keys of the tower alone say.
pub(super) fn settle(leaves: &mut Leaves<'_>, keys: &[&str], odd: Option<(String, String)>, what: &str) {
    leaves.reading.not_modelled.retain(|item| !keys.contains(&&*item.name));
    if let Some((name, value)) = odd {
        let place = leaves.get("vision_tower").and_then(|leaf| leaf.span);
        let item = NotModelled::new(&name, &value, Effect::Model, what).at_some(place);
        leaves.reading.not_modelled.push(item);
    }
}
