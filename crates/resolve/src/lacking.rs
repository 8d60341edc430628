//! Which values of settings are read but not modelled, and their effect: they stop the verdict, unless the user
//! continues without them.

use super::lacking_adapters::{
    beside_adapters, fused, is_of_mixer, of_embedding, of_linear_mixers, over_expert_tensor,
};
use super::lacking_modules::{
    cut, dispatched, has_liger, liger_experts, one_by_one, own_rollouts, without_deepspeed,
};
use super::sharding::ask_for_optimizer;
use super::table::Table;
use super::{evaluation, lacking_experts, offload, tuning, vision, vision_lacking};
use crate::{Effect, NotModelled, NotRead, Origin, Reading, Subject};
use crate::{Setting, SettingValue};
use shardscope_plan::{AdapterLibrary, Field, LoraModules, Marks, Software, Word, bare_name, word};
use shardscope_source::{Code, Diagnostic};
use std::collections::HashSet;

/// Words of a setting that no estimator supports, and what they would change.
struct Lacking {
    field: Field,
    /// The words, separated by spaces.
    words: &'static str,
    effect: Effect,
    message: &'static str,
}

const fn lacking(field: Field, words: &'static str, effect: Effect, message: &'static str) -> Lacking {
    Lacking { field, words, effect, message }
}

const LACKING: &[Lacking] = &[lacking(
    Field::Optimizer,
    "lomo grokadamw stable_adamw came other",
    Effect::Memory,
    "this optimizer's states; Adam's would be counted",
)];

/// Words that estimators only support for Hugging Face's modules.
const LACKING_ELSEWHERE: &[Lacking] = &[
    lacking(
        Field::TrainType,
        "lora qlora freeze",
        Effect::Model,
        "adapters on frozen weights in this software; all weights would be counted as trained",
    ),
    lacking(
        Field::BaseQuantization,
        "nf4 fp4 int8 fp8",
        Effect::Memory,
        "frozen weights in a quantized format in this software",
    ),
];

/// Words that estimators do not support for modules whose quantized layers were not recorded.
const QUANTIZED: &[Lacking] = &[lacking(
    Field::BaseQuantization,
    "nf4 fp4 int8 fp8",
    Effect::Memory,
    "what layers save for backward over frozen quantized weights in this software",
)];

/// Switches that no estimator supports if they are on.
const SWITCHES: &[(Field, Effect, &str)] = &[];

/// Switches that estimators only support for Hugging Face's modules.
const SWITCHES_ELSEWHERE: &[(Field, Effect, &str)] = &[
    (
        Field::LigerKernel,
        Effect::Memory,
        "Liger's fused kernels in this software, which save less for the backward pass",
    ),
    (Field::UseDora, Effect::Memory, "adapters that decompose weights (DoRA); LoRA's would be counted"),
];

/// Adds everything in the settings that no estimator supports.
pub(super) fn find(table: &mut Table, software: Software) {
    if table.has(Field::LoraRank) {
        table.derive(Field::TrainType, word::TrainType::Lora.value(), "the text sets up LoRA");
    }
    let (words, switches) = if software == Software::HfTransformers {
        (&[][..], &[][..])
    } else if software.semantics().eager_modules {
        let words = if software.semantics().modules.quantizes { &[][..] } else { QUANTIZED };
        (words, SWITCHES_ELSEWHERE)
    } else {
        (LACKING_ELSEWHERE, SWITCHES_ELSEWHERE)
    };
    // `components/distributed/parallelizer.py:apply_submodule_checkpointing`.
    let again = table.on(Field::GradientCheckpointing) || table.is(word::RecomputeGranularity::Full);
    if software == Software::Automodel && again && table.number(Field::NumExperts) == 0 {
        let message =
            "attention, MLP and norms recomputed one by one, as Automodel does with its own modules";
        table.lack(Field::GradientCheckpointing, "", Effect::Memory, message);
    }
    cut(table, software);
    dispatched(table, software);
    one_by_one(table, software);
    without_deepspeed(table, software);
    liger_experts(table, software);
    own_rollouts(table);
    super::beside::lacking(table, software);
    // Their adapters are supported for Megatron core's layers.
    let library = tuning::library(table, software);
    let adapters = library.is_some_and(AdapterLibrary::is_of_megatron);
    for Lacking { field, words, effect, message } in LACKING.iter().chain(words) {
        let said = table.word(*field);
        if *field == Field::TrainType && table.is(word::TrainType::Lora) && adapters {
            continue;
        }
        if !said.is_empty() && words.split_ascii_whitespace().any(|word| word == said) {
            let value = said.to_owned();
            table.lack(*field, &value, *effect, message);
            if *field == Field::Optimizer {
                ask_for_optimizer(table);
            }
        }
    }
    for (field, effect, message) in SWITCHES.iter().chain(switches) {
        if table.on(*field) {
            table.lack(*field, "", *effect, message);
        }
    }
    let all = table.words(Field::LoraTargetModules).iter().any(|name| name.starts_with("all"));
    if table.on(Field::UseDora) && table.has(Field::NumExperts) && all {
        let message = "DoRA with experts, which PEFT rejects because it adapts them as parameters";
        table.lack(Field::UseDora, "", Effect::Memory, message);
    }
    if table.has(Field::LigerParts) && software != Software::HfTransformers {
        let value = table.words(Field::LigerParts).join(" ");
        let message = "Liger's fused kernels in this software, which save less for the backward pass";
        table.lack(Field::LigerParts, &value, Effect::Memory, message);
    }
    arrangement(table, software);
    evaluation::find(table, software);
    super::sharding::lacking(table, software);
    if table.is(word::TrainingObjective::Kto)
        && !(table.is_any(&[word::PreferenceLogits::Fp32, word::PreferenceLogits::Own])
            && software == Software::HfTransformers)
    {
        let message = "KTO in this trainer, and the tensors that it holds besides the model";
        table.lack(Field::TrainingObjective, "kto", Effect::Memory, message);
    }
    super::objective::lacking(table, software);
    beside_adapters(table, software, adapters);
    fused(table, software);
    super::unquantized::lacking(table, software);
    super::low_rank::lacking(table, software);
    on_the_host(table, software);
    super::lacking_compiled::compiled(table, software);
    super::lacking_modules::scored_states(table, software);
    offload::lacking(table, software);
    if let Some(library) = library {
        over_expert_tensor(table, library);
    }
    of_linear_mixers(table, software);
    let mut unknown = table.words(Field::LoraTargetModules);
    // It is not known yet whether a model that is being asked for has one.
    let mixer = table.has(Field::LinearMixer) || super::named::is_open(table);
    unknown.retain(|name| LoraModules::default().named(name).is_none() || (!mixer && is_of_mixer(name)));
    if !unknown.is_empty() {
        let value = unknown.join(" ");
        let message = "adapters on these modules; all weights would be counted as trained";
        table.lack(Field::LoraTargetModules, &value, Effect::Model, message);
    }
    let adapted = table.words(Field::LoraTargetModules);
    let adapted = adapted.iter().fold(LoraModules::default(), |all, name| all.named(name).unwrap_or(all));
    of_embedding(table, software, adapted);
    let part = adapted.reach_experts() && !adapted.cover_experts();
    if table.on(Field::ConvertedExperts) && part && software == Software::HfTransformers {
        let message =
            "adapters on part of the experts' weights (PEFT rejects only one of gate_proj and up_proj)";
        table.lack(Field::LoraTargetModules, "", Effect::Model, message);
    }
    lacking_experts::find(table, software);
    vision::only_with_tower(table);
    if let Some((effect, message)) = vision_lacking::lacking(table, software) {
        table.lack(Field::VisionTower, "", effect, &message);
    } else {
        vision::ask(table);
    }
    let others = vision::others_frozen(table);
    if !others.is_empty() {
        let value = others.join(" ");
        table.lack(
            Field::FrozenModules,
            &value,
            Effect::Model,
            "frozen parts; all weights would be counted as trained",
        );
    }
}

/// Norms that were only recorded in transformers' own modules.
fn arrangement(table: &mut Table, software: Software) {
    let recorded = matches!(software, Software::HfTransformers | Software::Olmo | Software::OlmoCore);
    let own = recorded && !has_liger(table);
    let recomputed = table.on(Field::GradientCheckpointing) || table.is(word::RecomputeGranularity::Full);
    let unrecorded = table.word(Field::UnrecordedModules).to_owned();
    if matches!(software, Software::HfTransformers | Software::Xtuner) && !unrecorded.is_empty() {
        if recomputed {
            let message =
                format!("a recomputed layer of {unrecorded} is assumed to save what a Llama layer saves");
            table.warn(Code::NotEstimated, Field::UnrecordedModules, &message);
        } else {
            let message = "what the modules of this model type save for the backward pass; with gradient checkpointing only layer inputs are saved";
            table.lack(Field::UnrecordedModules, &unrecorded, Effect::Memory, message);
        }
    }
    let known = table.listed();
    let differs = |variant| known.contains(&variant);
    let variants = table.words(Field::ModuleVariants).join(" ");
    // Of Automodel's models with experts those variants are known that `dispatched` lets pass.
    let own = own || software.semantics().modules.dispatches_experts && table.number(Field::NumExperts) > 0;
    if software.semantics().eager_modules && !variants.is_empty() && (!own || table.on(Field::LoraKernels)) {
        let message = "modules that differ from Llama's, in this software or with these kernels";
        table.lack(Field::ModuleVariants, &variants, Effect::Memory, message);
    }
    if own && differs(word::ModuleVariant::EagerOnly) && table.is(word::AttnImplementation::Sdpa) {
        let message = "SDPA in a model whose modules have none (transformers refuses it)";
        table.lack(Field::AttnImplementation, "sdpa", Effect::Memory, message);
    }
    let other = !table.is_unset_or(&[word::AttnImplementation::Eager]);
    if own && differs(word::ModuleVariant::EagerAlone) && other {
        let value = table.word(Field::AttnImplementation).to_owned();
        let message = "attention of this model other than eager (transformers has no SDPA for it)";
        table.lack(Field::AttnImplementation, &value, Effect::Memory, message);
    }
    let grouped = table.is_unset_or(&[word::ExpertsImplementation::GroupedMm]);
    if own && differs(word::ModuleVariant::ClampedExperts) && !grouped {
        let message = "experts of this model that are not computed by one grouped GEMM";
        table.lack(Field::ExpertsImplementation, "", Effect::Memory, message);
    }
    for (field, message) in [
        (Field::PostNorms, "what norms after attention and MLP save is not estimated in this software"),
        (Field::NormsOverHeads, "norms of queries and keys are taken to be over each head in this software"),
        (Field::AttentionSoftcap, "what soft-capped attention scores save is not estimated in this software"),
    ] {
        if table.on(field) && !software.semantics().eager_modules {
            table.warn(Code::NotEstimated, field, message);
        }
    }
    for (field, message) in [
        (Field::NormsBehind, "norms after attention and MLP, and none before, in these modules"),
        (Field::NormsOverHeads, "norms of queries and keys over all heads together in these modules"),
    ] {
        let known = field == Field::NormsOverHeads && !software.semantics().eager_modules;
        if table.on(field) && !known && (!own || table.on(Field::LoraKernels)) {
            table.lack(field, "", Effect::Memory, message);
        }
    }
}

/// Saved tensors offloaded to the host: known if layers of transformers are fully recomputed, so that only their inputs
/// are saved, and nothing is frozen or fused.
fn on_the_host(table: &mut Table, software: Software) {
    let layers = table.number(Field::CpuOffloadingNumLayers);
    if layers > 0 {
        let message = "layer activations offloaded to the host (--cpu-offloading-num-layers)";
        table.lack(Field::CpuOffloadingNumLayers, &layers.to_string(), Effect::Memory, message);
    }
    if table.on(Field::OffloadEveryInput) && software != Software::HfTransformers {
        let message = "every layer's input offloaded to the host, in layers other than transformers' own";
        table.lack(Field::OffloadEveryInput, "", Effect::Memory, message);
    }
    if !table.on(Field::OffloadSavedTensors) {
        return;
    }
    let recomputed = table.on(Field::GradientCheckpointing) || table.is(word::RecomputeGranularity::Full);
    let frozen = table.is_any(&[word::TrainType::Lora, word::TrainType::QLora, word::TrainType::Freeze]);
    let other = software != Software::HfTransformers
        || has_liger(table)
        || table.degree(Field::PipelineModelParallelSize) > 1
        || !table.is_unset_or(&[word::LossKind::Torch, word::LossKind::Tiled]);
    if !recomputed || frozen || other {
        let message = "saved tensors offloaded to the host, where layers are not fully recomputed or not transformers' own";
        table.lack(Field::OffloadSavedTensors, "", Effect::Memory, message);
    }
}

/// Settings that are removed together when the plan continues without one of them.
const TOGETHER: [Field; 5] = [
    Field::TrainType,
    Field::LoraRank,
    Field::LoraTargetModules,
    Field::BaseQuantization,
    Field::FrozenModules,
];

/// Removes settings that are not modelled from the table, so that the plan is made without them, except two whose step
/// time is known; returns what was removed.
pub(super) fn set_aside(table: &mut Table, items: &[NotModelled]) -> Vec<(Field, Setting)> {
    let mut fields: Vec<Field> = items.iter().filter_map(|item| Field::named(&item.name)).collect();
    if fields.iter().any(|field| TOGETHER.contains(field)) {
        fields.extend(TOGETHER);
    }
    if fields.contains(&Field::VisionTower) {
        fields.extend(vision::FIELDS);
    }
    let mut held = Vec::new();
    for field in fields {
        if let Some(setting) = table.get(field).cloned() {
            held.push((field, setting));
        }
        if field == Field::Optimizer {
            table.fill(
                field,
                word::Optimizer::Adam.value(),
                Origin::Default,
                "in place of one that is not modelled",
            );
        } else if !matches!(field, Field::Software | Field::ReferenceMixers) {
            table.clear(field);
        }
    }
    held
}

/// Reports each setting that is not modelled once; returns them and, if the user continues without all of them, the
/// marks.
pub(super) fn marks(table: &mut Table, readings: &[Reading]) -> (Vec<NotModelled>, Option<Marks>) {
    let mut items: Vec<NotModelled> = Vec::new();
    let mut said = HashSet::new();
    for item in std::mem::take(&mut table.not_modelled) {
        // With a layer pattern, the switch and the program for hybrid layers add nothing.
        let hybrid = item.is_called("is-hybrid-model") || item.subject == Subject::HybridProgram;
        if !table.meets(&item) || hybrid && table.has(Field::HybridOverridePattern) {
            continue;
        }
        // A text may have one for each of its words.
        if said.insert(bare_name(&item.name)) {
            items.push(item);
        }
    }
    let asked: Vec<String> = table.words(Field::Without).into_iter().map(str::to_owned).collect();
    let without: HashSet<String> = asked.iter().map(|name| bare_name(name)).collect();
    let mut marks = Marks::default();
    let mut stopped = false;
    for item in &items {
        let gone = without.contains(&bare_name(&item.name));
        let diagnostic = if gone {
            Diagnostic::warning(
                Code::GoneWithout,
                format!("{}; left out of the estimate as you chose", item.sentence()),
            )
        } else {
            stopped = true;
            Diagnostic::error(Code::NotModelled, item.sentence())
        };
        let hint = if gone { "the verdict says so" } else { WAY_ON };
        table.say(diagnostic, hint, item.span);
        if gone {
            marks.without.push(item.name.clone());
        }
    }
    // A link carries the marks of a text that is not part of it.
    let alone = readings.iter().all(|reading| reading.found.is_empty());
    for name in &asked {
        if said.contains(&bare_name(name)) {
            continue;
        }
        if alone {
            marks.without.push(name.clone());
        } else {
            let message = format!("nothing named {name} is unmodelled in this text");
            table.say(Diagnostic::note(Code::GoneWithout, message), "", None);
        }
    }
    marks.not_read = not_read(table, readings);
    marks.not_read.retain(|name| !said.contains(&bare_name(name)));
    state(table, Field::Without, &marks.without);
    state(table, Field::NotRead, &marks.not_read);
    (items, (!stopped).then_some(marks))
}

const WAY_ON: &str = "continue without it (the verdict will say so), or remove it from the text";

/// The options and keys that no reader knows, each once, including those from a link.
fn not_read(table: &Table, readings: &[Reading]) -> Vec<String> {
    /// Maximum number of names carried along: a text with more unknown ones is for another program.
    const MOST: usize = 64;
    let mut names: Vec<String> = table.words(Field::NotRead).into_iter().map(str::to_owned).collect();
    for NotRead { name, .. } in readings.iter().flat_map(|reading| &reading.not_read) {
        if names.len() < MOST && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Stores the names in their setting, which carries them into links and documents.
fn state(table: &mut Table, field: Field, names: &[String]) {
    if names.is_empty() {
        table.clear(field);
        return;
    }
    let list = names.iter().map(|name| SettingValue::Text(name.clone())).collect();
    let origin = if field == Field::Without { Origin::User } else { Origin::Script };
    table.fill(field, SettingValue::List(list), origin, "the verdict is marked with it");
}
