//! Which parts of a model with a vision tower train, and the format of its frozen part.

use super::dialect::Dialect;
use crate::Origin;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, DEEP, PROJECTOR, TOWER};

/// A key, the part of the model that it freezes, and whether it does so by default.
type Switch = (&'static str, &'static str, bool);

/// `llamafactory/hparams/finetuning_args.py`. For Qwen3-VL the modules that belong to the tower are listed since change
/// #9399 of November 2025: before that, position embedding and deepstack mergers trained anyway.
const LLAMA_FACTORY: [Switch; 3] = [
    ("freeze_vision_tower", TOWER, true),
    ("freeze_multi_modal_projector", PROJECTOR, true),
    ("freeze_language_model", DECODER, false),
];
/// Most pixels of an image, 768 by 768 (`llamafactory/hparams/model_args.py:image_max_pixels`).
const IMAGE_PIXELS: &str = "589824";
/// `swift/arguments/tuner_args.py`.
const SWIFT: [Switch; 3] =
    [("freeze_vit", TOWER, true), ("freeze_aligner", PROJECTOR, true), ("freeze_llm", DECODER, false)];

/// States which parts are frozen. A model without a tower has none of them, and the settings are removed again.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // `transformers/integrations/liger.py:apply_liger_kernel`, on an existing model; ms-swift leaves it to the Trainer.
    if let Some(leaf) = leaves.yes("use_liger_kernel") {
        leaves.say_noted(Field::VisionLiger, "layers", leaf, "the Trainer patches the model that was built");
    }
    adapters(leaves, dialect);
    let own = [
        super::tinyllava::read,
        super::bunny::read,
        super::llava::read,
        super::internvl::read,
        super::qwen_vl::read,
        super::qwen_vl::read_series,
    ];
    if dialect == Dialect::Transformers && own.iter().any(|read| read(leaves)) {
        return;
    }
    if dialect == Dialect::Swift {
        // `swift/trainers/mixin.py:_prepare_gradient_checkpointing`, on by default (`vit_gradient_checkpointing`).
        let why = "ms-swift hooks the module that embeds patches";
        leaves.state(Field::VisionHooked, "true", Origin::Derived, why);
        // `swift/arguments/base_args/quant_args.py:get_modules_to_not_convert`.
        let why = "ms-swift quantizes no layer of tower and aligner";
        leaves.state(Field::VisionUnquantized, "true", Origin::Derived, why);
        checkpoints(leaves);
    }
    if let Some(leaf) = leaves.get("tuner_type").filter(|leaf| leaf.value == "lora_llm") {
        leaves.say_noted(Field::FrozenModules, "none", leaf, "tower and aligner train in full");
        leaves.say(Field::VisionAdapters, "false", leaf);
        return;
    }
    let switches = match dialect {
        Dialect::LlamaFactory => &LLAMA_FACTORY,
        // Names of layers may also occur in the tower; `all-linear` excludes frozen parts.
        Dialect::Swift if targets_all(leaves) => &SWIFT,
        _ => return of_pattern(leaves),
    };
    let mut frozen: Vec<&str> = Vec::new();
    let mut said: Option<&Leaf> = None;
    for (key, part, default) in switches {
        let leaf = leaves.get(key).filter(|leaf| !leaf.value.is_empty());
        if leaf.and_then(Leaf::flag).unwrap_or(*default) {
            frozen.push(part);
        }
        said = said.or(leaf);
    }
    // For Qwen3-VL `model_utils/visual.py` counts deepstack mergers as part of the tower,
    // `swift/model/model_arch.py` of the projector.
    let with = if dialect == Dialect::Swift { PROJECTOR } else { TOWER };
    if frozen.contains(&with) && frozen.contains(&TOWER) != frozen.contains(&PROJECTOR) {
        frozen.push(DEEP);
    }
    // LLaMA-Factory's older switch: everything except the projector is frozen.
    if let Some(leaf) = leaves.yes("train_mm_proj_only") {
        (frozen, said) = (vec![TOWER, DECODER], Some(leaf));
    }
    let frozen = if frozen.is_empty() { "none".to_owned() } else { frozen.join(" ") };
    let whose = format!("default of {}", dialect.name());
    match said {
        Some(leaf) => leaves.say(Field::FrozenModules, &frozen, leaf),
        None => leaves.state(Field::FrozenModules, &frozen, Origin::Default, &whose),
    }
    if dialect == Dialect::LlamaFactory {
        if leaves.get("image_max_pixels").is_none() {
            leaves.state(Field::ImagePixels, IMAGE_PIXELS, Origin::Default, &whose);
        }
        if frozen.contains(TOWER) {
            let why = "LLaMA-Factory checkpoints only layers that train";
            leaves.state(Field::VisionRecompute, "false", Origin::Derived, why);
        }
        // `model_utils/checkpointing.py:get_custom_gradient_checkpointing_func`; PEFT hooks the modules that it adapts.
        if !matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
            let why = "LLaMA-Factory checkpoints layers that train, without a hook on what comes before them";
            leaves.state(Field::VisionInputGrads, "false", Origin::Derived, why);
        }
        let format = if leaves.reading.value(Field::Fp16).is_some() { "fp16" } else { "bf16" };
        let why = "LLaMA-Factory loads weights in the format it computes in, and casts those that train";
        leaves.state(Field::VisionDtype, format, Origin::Derived, why);
    }
}

/// Whether every linear layer outside the frozen parts has an adapter: PEFT's own `all-linear`, and ms-swift's
/// expansion of the value (`swift/utils/transformers_utils.py:get_multimodal_target_regex`). Others expand it to a list
/// of names, which other modules may share.
fn adapters(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let own = matches!(dialect, Dialect::Transformers | Dialect::Trl)
        && leaves.reading.value(Field::LoraByNames).is_none();
    let lora = matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora"));
    let all = leaves.reading.value(Field::LoraTargetModules) == Some("all-linear");
    if lora && all && (own || dialect == Dialect::Swift) {
        let why = "`all-linear` is every linear layer that is not frozen";
        leaves.state(Field::VisionAdapters, "true", Origin::Derived, why);
    }
}

/// Whether ms-swift checkpoints the tower, if that is configured separately from the decoder; otherwise both are alike.
fn checkpoints(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("vit_gradient_checkpointing") else { return };
    match leaf.flag() {
        Some(false) => {
            leaves.say(Field::VisionRecompute, "false", leaf);
            let why = "ms-swift removes the hook from a tower that it does not checkpoint";
            leaves.state(Field::VisionInputGrads, "false", Origin::Derived, why);
        }
        Some(true) => leaves.say(Field::VisionRecompute, "true", leaf),
        None => {}
    }
}

/// A pattern over the decoder's layers, which PEFT matches in full: no other module has an adapter, and
/// modules without one are frozen.
fn of_pattern(leaves: &mut Leaves<'_>) {
    let adapts = matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora"));
    let leaf = leaves.first(&["lora_target_modules", "lora_target", "target_modules"]);
    let names = |leaf: &&Leaf| {
        leaf.value.contains("language_model") && super::adapters::of_pattern(&leaf.value).is_some()
    };
    if let Some(leaf) = leaf.filter(names).filter(|_| adapts) {
        let note = "the pattern matches only layers of the decoder";
        leaves.say_noted(Field::FrozenModules, &format!("{TOWER} {PROJECTOR}"), leaf, note);
    }
}

/// Whether adapters apply to every linear layer outside the frozen parts, or there are none.
fn targets_all(leaves: &Leaves<'_>) -> bool {
    leaves.reading.value(Field::LoraTargetModules).is_none_or(|targets| targets == "all-linear")
}
