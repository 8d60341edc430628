//! TinyLLaVA Factory's arguments (`tinyllava/utils/arguments.py`, TinyLLaVA/TinyLLaVA_Factory at 53f12c780410):
//! a frozen tower, a connector that trains, and a decoder that trains, is frozen or has adapters, as its recipe says.

use super::towers;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, TOWER};
use shardscope_source::{Code, Diagnostic};

/// Switches by which its arguments are recognized.
const SIGNS: [&str; 3] = ["tune_type_llm", "tune_type_connector", "connector_type"];
const WHOSE: &str = "default of TinyLLaVA Factory";
/// Keys that stop the verdict elsewhere.
const OURS: [&str; 1] = ["vision_tower"];
/// Keys that change nothing beside a tower by itself and a projector of linear layers: a second tower belongs to one called
/// `mof` (`model/vision_tower/mof.py`), the rest to other connectors, to a tower that trains, or to nothing.
const IDLE: [&str; 9] = [
    "vision_tower2",
    "is_multimodal",
    "num_queries",
    "resampler_hidden_size",
    "num_resampler_layers",
    "tune_vision_tower_from_layer",
    "mm_patch_merge_type",
    "conv_version",
    "pretrained_model_path",
];
/// Keys with the words for which what trains and what the decoder is given are as modelled; what is left out is its
/// first word.
const AS_MODELLED: [(&str, &[&str]); 4] = [
    ("tune_type_vision_tower", &["frozen"]),
    ("tune_type_connector", &["full"]),
    ("mm_vision_select_feature", &["patch"]),
    ("image_aspect_ratio", &["square", "pad"]),
];

/// Whether the arguments are its own.
pub(super) fn is_own(leaves: &Leaves<'_>) -> bool {
    SIGNS.iter().any(|sign| leaves.has(sign))
}

/// States what trains (`training_recipe/base.py`, `lora_recipe.py`); returns whether the arguments are its own.
pub(super) fn trains(leaves: &mut Leaves<'_>) -> bool {
    if !is_own(leaves) {
        return false;
    }
    let recipe = leaves.get("training_recipe");
    let decoder = leaves.get("tune_type_llm");
    if let Some(leaf) = [recipe, decoder].into_iter().flatten().find(|leaf| leaf.hole.is_some()) {
        leaves.say(Field::TrainType, &leaf.value, leaf);
        return true;
    }
    let word = |leaf: Option<&Leaf>, default: &str| {
        leaf.map_or(default.to_owned(), |leaf| leaf.value.to_ascii_lowercase())
    };
    match (&*word(recipe, "common"), &*word(decoder, "frozen")) {
        ("common", "full" | "frozen") => leaves.state(Field::TrainType, "full", Origin::Derived, RECIPE),
        ("lora", "lora") => leaves.state(Field::TrainType, "lora", Origin::Derived, RECIPE),
        (recipe, decoder) => {
            let what =
                "parts that TinyLLaVA Factory's recipe quantizes, or leaves alone where they are to train";
            let value = format!("{recipe}, tune_type_llm {decoder}");
            let item = NotModelled::new("training_recipe", &value, Effect::Model, what);
            leaves.reading.not_modelled.push(item);
            leaves.state(Field::TrainType, "lora", Origin::Derived, RECIPE);
        }
    }
    true
}

const RECIPE: &str = "TinyLLaVA Factory's recipe, and what it tunes of the decoder";

/// Reads them; returns whether they are its own with a tower that is known, or left open.
pub(super) fn read(leaves: &mut Leaves<'_>) -> bool {
    let Some(said) = leaves.get("vision_tower").filter(|_| is_own(leaves)) else { return false };
    // A word in the name chooses the class, of which these two are others (`vision_tower/__init__.py:VisionTowerFactory`).
    let class = said.value.to_ascii_lowercase();
    let known =
        towers::named(&said.value).filter(|_| !["mof", "dinov2"].iter().any(|other| class.contains(other)));
    if known.is_none() && said.hole.is_none() {
        return false;
    }
    let connector = leaves.get("connector_type");
    let layers = towers::projector_layers(connector.map_or("linear", |leaf| &leaf.value));
    let open = connector.filter(|leaf| leaf.hole.is_some());
    let mut odd = as_not_modelled(leaves);
    if layers.is_none() && open.is_none() {
        odd = odd.or(connector.map(|leaf| (leaf.path.clone(), leaf.value.clone())));
    }
    if !towers::runs_in_half(leaves) {
        odd = odd.or(Some(("fp16".to_owned(), "its default".to_owned())));
    }
    // transformers 4.40 chooses by the decoder's class, of which some have no kernel but the one that is asked for.
    if leaves.reading.value(Field::AttnImplementation).is_none() {
        odd = odd.or(Some(("attn_implementation".to_owned(), "its default".to_owned())));
    }
    if leaves.reading.value(Field::BaseQuantization).is_some() {
        odd = odd.or(Some(("bits".to_owned(), leaves.text("bits").unwrap_or_default().to_owned())));
    }
    for key in SIGNS.iter().chain(&IDLE).chain(&["training_recipe"]) {
        leaves.pass(key);
    }
    let what = "TinyLLaVA Factory with other parts, a dtype or an attention that is not modelled";
    towers::settle(leaves, &OURS, odd, what);
    let note = "of the tower and the connector that TinyLLaVA Factory builds";
    match known {
        // The first token is left out whether or not it is a class token (`vision_tower/base.py:forward`).
        Some(tower) => towers::state(leaves, tower, tower.tokens - 1, said, note),
        None => leaves.say(Field::VisionTower, &said.value, said),
    }
    match open {
        Some(leaf) => leaves.say(Field::ProjectorLayers, &leaf.value, leaf),
        None => {
            leaves.state(Field::ProjectorLayers, &layers.unwrap_or(0).to_string(), Origin::Derived, note);
        }
    }
    leaves.state(Field::SeqLength, "512", Origin::Default, WHOSE);
    // What a frozen decoder means depends on the projector before it.
    if known.is_some() && open.is_none() {
        frozen(leaves);
    }
    if matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        towers::adapters(leaves, WHOSE);
    }
    let message = "TinyLLaVA Factory requires transformers 4.40.1; what its decoder and loss save is counted as in \
                   transformers 5";
    leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(said.span));
    true
}

/// The decoder is frozen unless its own switch says otherwise.
fn frozen(leaves: &mut Leaves<'_>) {
    let both = format!("{TOWER} {DECODER}");
    match leaves.get("tune_type_llm") {
        Some(leaf) if leaf.value.eq_ignore_ascii_case("frozen") => {
            leaves.say(Field::FrozenModules, &both, leaf);
        }
        Some(leaf) => {
            leaves.say_noted(Field::FrozenModules, TOWER, leaf, "the tower alone is frozen as a whole");
        }
        None => leaves.state(Field::FrozenModules, &both, Origin::Default, WHOSE),
    }
}

/// The first key whose word is not modelled, and that word.
fn as_not_modelled(leaves: &Leaves<'_>) -> Option<(String, String)> {
    let odd = |(key, words): &(&str, &[&str])| {
        let said = leaves.get(key)?;
        let known = words.iter().any(|word| said.value.eq_ignore_ascii_case(word));
        (!known).then(|| (said.path.clone(), said.value.clone()))
    };
    // All of them are looked at, so that none is reported once more as a key that nobody read.
    AS_MODELLED.iter().filter_map(odd).fold(None, |first, more| first.or(Some(more)))
}
