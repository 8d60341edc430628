//! A vision tower next to the decoder: whether its figures are known in this run, and its parts.

use super::packs;
use super::table::Table;
use crate::{Asked, Question};
use shardscope_plan::{
    Field, NumberFormat, Projector, TowerGradients, TowerLiger, TowerModules, VisionKept, VisionTower, word,
};
use shardscope_source::{Code, Diagnostic};

/// The name under which trainers freeze the vision tower, and by which adapters select it.
pub const TOWER: &str = "vision_tower";
/// The name under which they freeze the projector onto the decoder.
pub const PROJECTOR: &str = "multi_modal_projector";

/// The name under which trainers freeze the decoder, if something before it trains.
pub const DECODER: &str = "language_model";

/// Mergers of deep layers (Qwen3-VL), which some programs count as part of the tower and others as part of the
/// projector. If nothing is said about them, they are frozen together with both.
pub const DEEP: &str = "deepstack_merger_list";

/// The value if no part is frozen.
const NONE: &str = "none";

/// The settings of a vision tower, which are removed together.
pub(super) const FIELDS: [Field; 22] = [
    Field::VisionTower,
    Field::VisionParameters,
    Field::VisionLayers,
    Field::VisionLayerParameters,
    Field::VisionHiddenSize,
    Field::VisionPatches,
    Field::VisionHooked,
    Field::VisionKept,
    Field::VisionShared,
    Field::VisionDtype,
    Field::VisionUnquantized,
    Field::VisionRecompute,
    Field::VisionInputGrads,
    Field::VisionLiger,
    Field::VisionUnits,
    Field::VisionModules,
    Field::VisionInEngine,
    Field::VisionAdapters,
    Field::ProjectorLayers,
    Field::ImagePatches,
    Field::ImagePixels,
    Field::FrozenModules,
];

/// Frozen parts that do not belong to a vision tower.
pub(super) fn others_frozen(table: &Table) -> Vec<&str> {
    let mut frozen = table.words(Field::FrozenModules);
    // A projector can still train through a frozen decoder, so the decoder then does not count.
    let through = trains_before_decoder(table);
    frozen.retain(|name| !([TOWER, PROJECTOR, DEEP, NONE].contains(name) || through && *name == DECODER));
    frozen
}

/// Whether a projector trains, with its tower or alone, so that gradients flow through a decoder that is frozen: LLaVA's, and
/// InternVL's own, whose modules were recorded so (`tests/data/activations/internvl_own.jsonl`).
pub(super) fn trains_before_decoder(table: &Table) -> bool {
    let sharded = table.is_any(&[word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2]);
    let whole =
        table.is_unset_or(&[word::TrainType::Full]) && modules(table) == TowerModules::Own && !sharded;
    let [_, projector, _] = parts(table);
    // Mergers of Megatron core's layers: Megatron-Bridge's recipes that freeze decoder and tower.
    let merges = table.is_unset_or(&[word::TrainType::Full]) && modules(table) == TowerModules::Core;
    has_projector(table)
        || whole && projector && kept(table).is_some_and(|kept| kept.flash_alone)
        || merges && projector
}

/// Whether a projector trains after a frozen tower.
pub(super) fn has_projector(table: &Table) -> bool {
    table.on(Field::VisionTower) && table.number(Field::ProjectorLayers) > 0
}

/// If the model has no tower, removes the settings that trainers make for towers.
pub(super) fn only_with_tower(table: &mut Table) {
    if table.on(Field::VisionTower) {
        return;
    }
    // Scripts freeze the tower of any model by habit; without a tower this changes nothing.
    if others_frozen(table).is_empty() {
        table.clear(Field::FrozenModules);
    }
    table.clear(Field::VisionDtype);
    table.clear(Field::VisionUnquantized);
    table.clear(Field::VisionInputGrads);
    table.clear(Field::VisionHooked);
    table.clear(Field::VisionLiger);
    table.clear(Field::VisionUnits);
    table.clear(Field::VisionModules);
    table.clear(Field::VisionInEngine);
    table.clear(Field::VisionAdapters);
    table.clear(Field::ImagePixels);
    table.clear(Field::VisionRecompute);
}

/// Whether weights of the tower, of its projector and of mergers of deep layers train. A separate projector is not
/// included.
pub(super) fn parts(table: &Table) -> [bool; 3] {
    let here = table.on(Field::VisionTower) && !table.on(Field::VisionInEngine);
    if !here || has_projector(table) || adapted(table) || !trains(table) {
        return [false; 3];
    }
    let frozen = table.words(Field::FrozenModules);
    let [tower, projector] = [TOWER, PROJECTOR].map(|part| !frozen.contains(&part));
    [tower, projector, !frozen.contains(&DEEP)]
}

/// Whether a projector that is not separate trains after a frozen tower.
pub(super) fn projects(table: &Table) -> bool {
    has_projector(table) || gradients(table) == TowerGradients::None && parts(table) != [false; 3]
}

/// Which parts of the tower have gradients: all, if it trains; only its activations, if a hook reaches it.
pub(super) fn gradients(table: &Table) -> TowerGradients {
    let [tower, ..] = parts(table);
    let here = table.on(Field::VisionTower) && !table.on(Field::VisionInEngine);
    let hooked = here && !has_projector(table) && table.on(Field::VisionInputGrads);
    match () {
        () if tower => TowerGradients::Trained,
        () if adapters(table) != [false; 3] => TowerGradients::Adapted,
        () if hooked && !adapted(table) => TowerGradients::Through,
        () => TowerGradients::None,
    }
}

pub(super) fn is_policy(table: &Table) -> bool {
    table.is(word::TrainingObjective::Policy)
}

/// Which of the tower, its projector and mergers of deep layers have adapters, as far as this is known: on each of its
/// linear layers.
pub(super) fn adapters(table: &Table) -> [bool; 3] {
    if !(adapted(table) && table.on(Field::VisionAdapters) && kept(table).is_some()) {
        return [false; 3];
    }
    let frozen = table.words(Field::FrozenModules);
    let [tower, projector, deep] = [TOWER, PROJECTOR, DEEP].map(|part| !frozen.contains(&part));
    if tower { [tower, projector, deep] } else { [false; 3] }
}

/// Whether adapters reach it, or only some of its layers train. With adapters only on the decoder it may train in full.
pub(super) fn adapted(table: &Table) -> bool {
    let beside = table.is(word::TrainType::Lora)
        && table.has(Field::VisionAdapters)
        && !table.on(Field::VisionAdapters);
    trains(table) && !beside && !table.is_unset_or(&[word::TrainType::Full])
}

/// Which of its norms are Liger's; none if that is not known, or if what they keep is not.
pub(super) fn tower_liger(table: &Table) -> Option<TowerLiger> {
    let kept = kept(table)?;
    let [tower, projector, _] = parts(table);
    if table.has(Field::LigerParts) {
        return None;
    }
    match (table.on(Field::LigerKernel) && kept.liger?, table.chosen()) {
        (false, _) => Some(TowerLiger::None),
        (true, Some(word::VisionLiger::Layers)) => Some(TowerLiger::Layers),
        (true, Some(word::VisionLiger::Class)) if tower && projector => Some(TowerLiger::Class),
        _ => None,
    }
}

/// The origin of its modules.
pub(super) fn modules(table: &Table) -> TowerModules {
    match table.chosen::<word::VisionModules>() {
        Some(word::VisionModules::Transformers) => TowerModules::Whole,
        Some(word::VisionModules::Core) => TowerModules::Core,
        Some(word::VisionModules::Provider | word::VisionModules::Bridge) => {
            let whole = kept(table).is_some_and(|kept| kept.whole_in_bridge);
            if whole { TowerModules::Whole } else { TowerModules::Core }
        }
        _ => TowerModules::Own,
    }
}

/// Whether it is next to a decoder of Megatron core, or is only held by the rollout engine.
fn of_megatron(table: &Table) -> bool {
    modules(table).is_beside_core() || table.on(Field::VisionInEngine)
}

/// Whether layers of the decoder are fully recomputed.
pub(super) fn recomputes(table: &Table) -> bool {
    table.on(Field::GradientCheckpointing) || table.has(Field::RecomputeGranularity)
}

/// What it keeps for backward, as far as there are rules for its type.
pub(super) fn kept(table: &Table) -> Option<VisionKept> {
    VisionKept::named(&table.words(Field::VisionKept)).filter(|_| table.has(Field::VisionKept))
}

/// Whether the tower or its projector keeps anything.
fn keeps(table: &Table) -> bool {
    gradients(table) != TowerGradients::None || parts(table) != [false; 3]
}

/// The maximum number of pixels in an image that processors of Qwen's models accept, in patches: 12,845,056 over 14²
/// for Qwen2-VL and Qwen2.5-VL, 16,777,216 over 16² for Qwen3-VL (`max_pixels`, `size.longest_edge` of their
/// preprocessor_config.json).
const MOST_PATCHES: u64 = 65_536;

/// Asks for the number of patches in a sample's images, if the tower keeps tensors for each.
fn ask_for_images(table: &mut Table) {
    let Some(kept) = kept(table).filter(|_| keeps(table)) else { return };
    if table.has(Field::ImagePatches) {
        return;
    }
    let group = table.degree(Field::VisionPatches);
    let pixels = table.number(Field::ImagePixels);
    let (patches, origin) = if kept.image > 0 && (!kept.tiled || pixels == 0) {
        // A fixed image size (SigLIP, CLIP) is known; for towers of any size the processor sets the limit.
        (kept.image, "one image at the size that the model takes")
    } else if pixels > 0 {
        (
            pixels / (kept.patch * kept.patch).max(1),
            "one image at the largest size that the settings let through",
        )
    } else {
        (MOST_PATCHES, "one image at the largest size that the model's processor lets through")
    };
    // Images are part of the prompt. A pack may be full of prompts with short answers.
    let alone = packs::capacity(table).is_none();
    let length = table.number(Field::SeqLength);
    let (holds, what) = match table.count(Field::MaxPromptLength).filter(|prompt| alone && *prompt < length) {
        Some(prompt) => (prompt, "the longest prompt"),
        None => (length, "the sequence"),
    };
    let fits = holds.saturating_mul(group);
    // A sequence cannot hold more images than tokens, which bounds the proposal.
    let bounded = kept.image == 0 || kept.tiled;
    let patches = if bounded && fits > 0 && fits < patches { fits } else { patches };
    // Tiles are whole.
    let tile = if kept.tiled { kept.image.max(1) } else { 1 };
    let patches = if patches > tile { patches - patches % tile } else { patches };
    // Full groups: patches are merged into tokens by group, and no processor produces a size with a remainder.
    let patches = patches - patches % group.max(1);
    // The images of all samples in a pack go through the tower together.
    let whose = if packs::capacity(table).is_some() { "pack of samples" } else { "sample" };
    let message = format!(
        "the vision tower saves tensors for every patch of the images of a {whose}, and the text does not say how many there are"
    );
    let hint = format!(
        "set image_patches, of all images of a {whose}: {patches} are {origin}, as far as {what} holds their {} tokens",
        patches / group.max(1)
    );
    table.say(Diagnostic::error(Code::MissingSetting, message), &hint, table.span(Field::VisionTower));
    table.ask(Question {
        asks: Asked::Setting(Field::ImagePatches),
        prompt: format!(
            "How many patches of {0} x {0} pixels do the images of a {whose} have, all together? {patches} are {origin}, as far \
             as {what} holds them; {group} become one token.",
            kept.patch
        ),
        choices: Vec::new(),
        proposal: Some(patches.to_string()),
    });
}

/// Linear layers of decoders: adapters with these names are only on the decoder if a tower has none of the same name.
const OF_DECODER: [&str; 9] =
    ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head", "embed_tokens"];

/// Whether something in the tower or its projector trains: everything not stated as frozen, or under adapters the
/// modules named by one of their targets (PEFT matches the end of a module's path).
fn trains(table: &Table) -> bool {
    if table.has(Field::FrozenModules) {
        let frozen = table.words(Field::FrozenModules);
        // A part that is not stated as frozen trains.
        return [TOWER, PROJECTOR].iter().any(|part| !frozen.contains(part));
    }
    let targets = table.words(Field::LoraTargetModules);
    let shared = table.words(Field::VisionShared);
    let reaches = |target: &&str| {
        let name = target.rsplit('.').next().unwrap_or(target);
        !OF_DECODER.contains(&name) || shared.contains(&name)
    };
    // No stated targets means the library's own, which for some model types reach the tower.
    !table.is_any(&[word::TrainType::Lora, word::TrainType::QLora])
        || targets.is_empty()
        || targets.iter().any(reaches)
}

/// Asks whether a hook reaches the tower, which depends on library versions that no launch file names. transformers 5
/// hooks the embeddings of every submodel (huggingface/transformers#41993, `enable_input_require_grads`), called by its
/// own gradient checkpointing and by PEFT; before 5 it only hooked the token embeddings.
pub(super) fn ask(table: &mut Table) {
    ask_for_images(table);
    // Only if the answer changes anything: nothing trains, layers are recomputed, and transformers finds the embedding.
    let [tower, ..] = parts(table);
    let open = !tower
        && !table.on(Field::VisionInEngine)
        && !adapted(table)
        && table.on(Field::VisionHooked)
        && recomputes(table)
        && !table.has(Field::VisionInputGrads);
    if !table.has(Field::VisionParameters) || !open {
        return;
    }
    let message = "whether a hook makes the input of the frozen vision tower require a gradient, so that it keeps tensors for \
                   backward, depends on versions that the text does not name";
    let hint = "set vision_input_grads: false below transformers 5, true from 5 on; under ms-swift true before its change \
                #10214 of September 2026, false since";
    table.say(Diagnostic::error(Code::MissingSetting, message), hint, table.span(Field::VisionTower));
    table.ask(Question {
        asks: Asked::Setting(Field::VisionInputGrads),
        prompt: "Does the frozen vision tower keep tensors for backward? Below transformers 5 it does not (false), from 5 on it \
                 does (true); under ms-swift it did (true) before its change #10214 of September 2026 and does not since."
            .to_owned(),
        choices: ["false", "true"].map(str::to_owned).to_vec(),
        // The current behaviour of transformers, and until recently of ms-swift: the one that keeps more.
        proposal: Some("true".to_owned()),
    });
}

/// The plan's tower.
pub(super) fn tower(table: &Table) -> Option<VisionTower> {
    let parameters = table.count(Field::VisionParameters).filter(|_| table.on(Field::VisionTower))?;
    let hidden = table.number(Field::VisionHiddenSize);
    let projector = has_projector(table).then(|| Projector {
        layers: table.number(Field::ProjectorLayers),
        patches: table.number(Field::ImagePatches),
        // A class token, as CLIP's towers have, unless what is said of its layers says otherwise.
        before: kept(table).map_or(1, |kept| kept.prefix.min(1)),
    });
    let (parts, adapters) = (parts(table), adapters(table));
    let [projector_trains, deep_trains] = [parts[1] || adapters[1], parts[2] || adapters[2]];
    let projected =
        projector.map_or(0, |projector| projector.parameters(hidden, table.number(Field::HiddenSize)));
    Some(VisionTower {
        parameters: parameters.saturating_add(projected),
        projector,
        gradients: gradients(table),
        projector_trains,
        deep_trains: deep_trains && kept(table).is_some_and(|kept| kept.deep_projector > 0),
        kept: kept(table).filter(|_| keeps(table) || is_policy(table) || of_megatron(table)),
        liger: tower_liger(table).unwrap_or_default(),
        // Recomputed unless told otherwise, as transformers does for the decoder's layers.
        recomputed: !table.has(Field::VisionRecompute) || table.on(Field::VisionRecompute),
        image_patches: table.count(Field::ImagePatches).filter(|_| projector.is_none()),
        layers: table.number(Field::VisionLayers),
        layer_parameters: table.number(Field::VisionLayerParameters),
        hidden_size: hidden,
        patches_per_token: table.degree(Field::VisionPatches),
        modules: modules(table),
        in_engine_alone: table.on(Field::VisionInEngine),
        follows_formats: table.is(word::VisionModules::Core),
        // No tower runs in fp8; such a type applies to the decoder.
        dtype: table.format(Field::VisionDtype).filter(|dtype| *dtype != NumberFormat::Fp8),
    })
}
