//! Experiments of Primus (`modules: pre_trainer: overrides`): Megatron's flags as keys, or the settings of torchtitan,
//! which it also runs. Its own files: `primus/configs/modules/`, `primus/configs/models/`.

use super::leaves::{Leaf, Leaves, Scalars};
use super::models_by_file::{known_model, preset, without_ending};
use super::titan;
use crate::{Effect, Found, NotModelled, NotRead, Origin, Reading};
use shardscope_catalog as catalog;
use shardscope_config_tree::{Node, interpolate};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Span};

/// The trainer of an experiment.
fn trainer(root: &Node) -> Option<&Node> {
    let modules = root.get("modules")?;
    modules.entries().iter().find(|entry| entry.key.contains("trainer")).map(|entry| &entry.node)
}

/// The overrides of a Primus experiment.
pub(super) fn overrides(root: &Node) -> Option<&Node> {
    trainer(root)?.get("overrides")
}

/// The model of a Primus experiment, which has its own file: the node that names it, and the file's name.
pub(super) fn named_model(root: &Node) -> Option<(&Node, String)> {
    let named = trainer(root)?.get("model")?;
    Some((named, interpolate::with_defaults(named.word()?)))
}

/// Primus's own model files (`primus/configs/models/megatron`) that differ from the published models: its gpt-oss has
/// shared experts and no windows, its GLM-4.7 has two layers fewer; and those with Primus's own attention. The user is
/// asked for these files by name.
const OTHERS: [&str; 8] = [
    "gpt_oss_20B",
    "gpt_oss_120B",
    "glm4_7",
    "glm5",
    "deepseek_v3_base",
    "deepseek_v4_flash",
    "deepseek_v4_pro",
    "qwen3_5_35B_A3B",
];

/// How such files differ from the published configurations: embeddings are never tied (`language_model.yaml`), Qwen 2.5
/// has no biases of queries, keys and values, and the dense Qwen 3 has no norms of queries and keys
/// (`qwen2.5_base.yaml`). Keyed by prefixes of the names.
const OWN: [(&str, Field, &str); 7] = [
    ("", Field::UntieEmbeddingsAndOutputWeights, "true"),
    ("qwen2.5_", Field::AddQkvBias, "false"),
    ("deepseek_r1_distill_qwen_", Field::AddQkvBias, "false"),
    ("qwen3_4B", Field::QkLayernorm, "false"),
    ("qwen3_8B", Field::QkLayernorm, "false"),
    ("qwen3_14B", Field::QkLayernorm, "false"),
    ("qwen3_32B", Field::QkLayernorm, "false"),
];

/// Whether the catalog's model of that name matches Primus's file, except for the differences in `OWN`.
pub(super) fn is_published(name: &str) -> bool {
    let name = without_ending(name);
    !OTHERS.contains(&name) && known_model(name).is_some()
}

/// Tokens of data that `mock_data` makes up (`primus/backends/megatron/patches/args/mock_data_patches.py`, since April 10, 2026).
const MOCK_VOCABULARY: u64 = 131_072;

/// The override of that key, if it is on.
fn on<'a>(overrides: &'a Node, key: &str) -> Option<&'a Node> {
    let node = overrides.get(key)?;
    let said = interpolate::with_defaults(node.word()?);
    matches!(said.as_str(), "true" | "True" | "1").then_some(node)
}

/// The shape of an experiment's model, if Primus's own file for it is known.
pub(super) fn model(reading: &mut Reading, overrides: &Node, named: &Node, name: &str) {
    if !is_published(name) {
        return;
    }
    for (begins, field, value) in OWN {
        let stated = reading.found.iter().any(|found| found.field == field);
        if name.starts_with(begins) && !stated {
            let found = Found::new(field, value, Origin::Catalog).by("model", Some(named.span));
            reading.take(found.note("Primus's own file of the model"));
        }
    }
    // Megatron's tokenizer gives the vocabulary, not the embedding of the published model
    // (`primus/backends/megatron/training/tokenizer/tokenizer.py`).
    let stated = |field| reading.found.iter().any(|found| found.field == field);
    if stated(Field::VocabSize) {
        return preset(reading, named, name);
    }
    if let Some(node) = on(overrides, "mock_data") {
        let found = Found::new(Field::VocabSize, MOCK_VOCABULARY.to_string(), Origin::Catalog);
        let whose = "Primus's size of made-up data; before April 2026 it was the model's tokenizer's";
        reading.take(found.by("mock_data", Some(node.span)).note(whose));
        let null = Found::new(Field::TokenizerType, "NullTokenizer", Origin::Catalog);
        reading.take(null.by("mock_data", Some(node.span)));
        reading.found.retain(|found| found.field != Field::TokenizerModel);
        return preset(reading, named, name);
    }
    // Another tokenizer has its own vocabulary.
    let other = reading.value(Field::TokenizerModel).and_then(catalog::vocabulary);
    let of_model = || known_model(without_ending(name)).and_then(|(known, _)| catalog::vocabulary(known));
    if let Some((size, whose)) = other.or_else(of_model) {
        let found = Found::new(Field::VocabSize, size.to_string(), Origin::Catalog);
        reading.take(found.by("model", Some(named.span)).note(whose));
    }
    preset(reading, named, name);
}

/// The settings of an experiment whose trainer is not Megatron.
pub(super) fn of_another_trainer(root: &Node) -> Option<Reading> {
    let named = trainer(root)?.get("framework")?;
    match named.word()? {
        "megatron" => None,
        "torchtitan" => Some(of_titan(root)),
        other => {
            let mut reading = Reading::default();
            let what = "a Primus trainer other than Megatron and torchtitan";
            let item = NotModelled::new("framework", other, Effect::Model, what).at_some(Some(named.span));
            reading.not_modelled.push(item);
            if let Some((node, name)) = named_model(root) {
                preset(&mut reading, node, &name);
            }
            Some(reading)
        }
    }
}

/// Primus's defaults for torchtitan, as far as they are read (`primus/configs/modules/torchtitan/pre_trainer.yaml`).
const PRE_TRAINER: [(&str, &str); 5] = [
    ("training.local_batch_size", "8"),
    ("training.seq_len", "2048"),
    ("activation_checkpoint.mode", "none"),
    ("compile.enable", "true"),
    ("compile.components", "[model,loss]"),
];

/// Switches of Primus-Turbo with torchtitan that change the saved tensors. The others select kernels: attention saves
/// the same tensors as flash attention (`primus_turbo/pytorch/ops/attention`), and fp8 also needs a converter.
const TITAN_LACKS: [(&str, &str); 1] =
    [("primus_turbo.enable_attention_float8", "fp8 attention (Primus-Turbo)")];

fn of_titan(root: &Node) -> Reading {
    let base = "pre_trainer.yaml";
    let mut known: Vec<Leaf> =
        PRE_TRAINER.iter().map(|(path, value)| Leaf::of_base(base, path, value)).collect();
    let named = named_model(root);
    let of_fp8 = named.as_ref().is_some_and(|(_, name)| without_ending(name).ends_with("-fp8"));
    if let Some((_, name)) = &named
        && let Some((family, size)) = without_ending(name).rsplit_once('_')
    {
        // Files of 3.1 to 3.3 name the flavors of a single family
        // (`primus/configs/models/torchtitan/llama3.3_70B.yaml`).
        let family = if family.starts_with("llama3") { "llama3" } else { family };
        known.push(Leaf::of_base(name, "model.name", family));
        known.push(Leaf::of_base(name, "model.flavor", &size.to_ascii_uppercase()));
    }
    let Some(node) = overrides(root) else { return titan::finish(&Scalars::from_leaves(known)) };
    let scalars = Scalars::on(known, node);
    let leaves = Leaves::over(&scalars);
    let mut lacks: Vec<NotModelled> = TITAN_LACKS
        .iter()
        .filter_map(|(path, what)| {
            let leaf = leaves.yes(path)?;
            Some(NotModelled::new(path, "", Effect::Memory, what).at_some(leaf.span))
        })
        .collect();
    let rounded = leaves.all().iter().find(|leaf| {
        (leaf.path.starts_with("quantize.") || leaf.path.starts_with("mx.")) && !leaf.value.is_empty()
    });
    if let Some(leaf) = rounded {
        let what = "GEMMs in a format chosen by Primus's converters";
        lacks.push(NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span));
    }
    if let Some((node, name)) = named.as_ref().filter(|_| of_fp8) {
        let what = "fp8 GEMMs, which the model file turns on";
        lacks.push(NotModelled::new("model", name, Effect::Memory, what).at_some(Some(node.span)));
    }
    leaves.pass_below(&["primus_turbo.", "quantize.", "mx."]);
    let mut reading = titan::finish(&scalars);
    reading.not_modelled.append(&mut lacks);
    if let Some((node, name)) = named {
        preset(&mut reading, node, &name);
    }
    reading
}

/// Whether a key is a switch of Primus-Turbo (`primus/configs/modules/megatron/primus_turbo.yaml`). DeepEP's switches
/// are among the defaults, as they select a dispatcher.
pub(super) fn is_of_turbo(key: &str) -> bool {
    key.starts_with("use_turbo_")
        || key.starts_with("turbo_")
        || key.contains("_primus_turbo")
        || key.contains("_turbo_attention")
}

/// Primus-Turbo under Megatron. None of it runs without `enable_primus_turbo`; with it, attention
/// saves the same tensors as flash attention and grouped GEMMs the same as Transformer Engine's,
/// whereas the switches below save others.
pub(super) fn turbo(reading: &mut Reading, overrides: &Node) {
    const LACKS: [(&str, &str); 5] = [
        ("enable_turbo_attention_float8", "fp8 attention (Primus-Turbo)"),
        ("use_turbo_mega_moe", "experts fused with their dispatch (Primus-Turbo)"),
        ("use_turbo_fused_act_with_probs", "an activation fused with the routing weights (Primus-Turbo)"),
        ("use_turbo_rms_norm", "Primus-Turbo norms"),
        ("use_turbo_norm_te_linear", "Primus-Turbo norms"),
    ];
    let on = |key: &str| on(overrides, key);
    let any = overrides.entries().iter().find(|entry| is_of_turbo(&entry.key));
    let Some(any) = any else { return };
    if on("enable_primus_turbo").is_none() {
        let message = "Primus-Turbo's switches change nothing: enable_primus_turbo is off";
        reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at(any.node.span));
        return;
    }
    for (key, what) in LACKS {
        if let Some(node) = on(key) {
            reading
                .not_modelled
                .push(NotModelled::new(key, "", Effect::Memory, what).at_some(Some(node.span)));
        }
    }
    // Its attention exchanges heads over the context-parallel ranks (`PrimusTurboAttention`: ulysses_group).
    let cut = reading.count(Field::ContextParallelSize).is_some_and(|size| size > 1);
    if let Some(node) = on("use_turbo_attention").filter(|_| cut) {
        let found = Found::new(Field::CpCommType, "a2a", Origin::Derived);
        reading.take(found.by("use_turbo_attention", Some(node.span)));
    }
    // Stage 1 fuses the router and the permutation; under fp8 the router then pads each expert's tokens, which
    // otherwise the experts would do. From stage 2 on, DeepEP receives into buffers of worst-case size
    // (`rocm_arg_validation.py:_get_sync_free_moe_options`, `experts.py`,
    // `primus_turbo.py:PrimusTurboDeepEPTokenDispatcher`).
    let stage = overrides.get("turbo_sync_free_moe_stage").and_then(|node| Some((node, node.whole()?)));
    match stage {
        Some((node, 1)) => {
            let by = "turbo_sync_free_moe_stage";
            reading.take(Found::new(Field::MoePermuteFusion, "true", Origin::Script).by(by, Some(node.span)));
        }
        Some((node, 2..)) => {
            let what = "buffers of experts sized for the worst case (sync-free MoE of Primus-Turbo)";
            let value = node.word().unwrap_or_default();
            let item = NotModelled::new("turbo_sync_free_moe_stage", value, Effect::Memory, what);
            reading.not_modelled.push(item.at_some(Some(node.span)));
        }
        _ => {}
    }
}

/// Groups of keys below the overrides, which are not flags.
pub(super) fn groups(reading: &mut Reading, overrides: &Node) {
    for entry in overrides.entries().iter().filter(|entry| !entry.node.entries().is_empty()) {
        match entry.key.as_str() {
            "lora" => adapters(reading, &entry.node),
            "torch_compile" => {
                if let Some(node) = entry.node.get("enable").filter(|node| node.flag() == Some(true)) {
                    let what = "torch.compile, which saves other tensors for backward";
                    let item = NotModelled::new("torch_compile.enable", "true", Effect::Memory, what);
                    reading.not_modelled.push(item.at_some(Some(node.span)));
                }
            }
            // Synthetic samples instead of data.
            "mock_dataset" => {}
            other => reading.not_read.push(NotRead::new(other, Some(entry.node.span))),
        }
    }
}

/// Adapters of `sft_trainer.yaml` (`megatron_sft_trainer.py:_init_lora`): Primus uses Megatron-Bridge's, whose modules
/// for dense layers are the same (`primus/backends/megatron/peft/`).
fn adapters(reading: &mut Reading, lora: &Node) {
    const USUAL: [&str; 4] = ["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"];
    let Some(enabled) = lora.get("enabled").filter(|node| node.flag() == Some(true)) else { return };
    let mut say = |field: Field, value: &str, by: &str, span: Span| {
        reading.take(Found::new(field, value, Origin::Script).by(by, Some(span)));
    };
    say(Field::TrainType, "lora", "lora.enabled", enabled.span);
    say(Field::AdapterLibrary, "megatron-bridge", "lora.enabled", enabled.span);
    for (key, field, usual) in [("dim", Field::LoraRank, "32"), ("dropout", Field::LoraDropout, "0")] {
        let node = lora.get(key);
        let value = node.and_then(Node::word).unwrap_or(usual);
        say(field, value, &format!("lora.{key}"), node.map_or(enabled.span, |node| node.span));
    }
    let named = lora.get("target_modules");
    let modules: Vec<&str> = match named {
        Some(node) => node.items().iter().filter_map(Node::word).collect(),
        None => USUAL.to_vec(),
    };
    let span = named.map_or(enabled.span, |node| node.span);
    say(Field::LoraTargetModules, &modules.join(" "), "lora.target_modules", span);
    // A model that is not named yet may have experts if expert-parallel ranks are given.
    let experts = [Field::NumExperts, Field::ExpertModelParallelSize];
    if experts.iter().any(|field| reading.value(*field).is_some_and(|count| count != "1")) {
        let what = "Primus adapters on experts";
        let item = NotModelled::new("lora", "", Effect::Memory, what).at_some(Some(enabled.span));
        reading.not_modelled.push(item);
    }
}

/// Defaults in Primus's own files (`trainer_base.yaml`, `pre_trainer.yaml`,
/// `language_model.yaml`, and those of its MoE models).
const PRIMUS: &[(Field, &str)] = &[
    (Field::Bf16, "true"),
    (Field::UseDistributedOptimizer, "true"),
    (Field::MicroBatchSize, "2"),
    (Field::GlobalBatchSize, "16"),
    (Field::SeqLength, "1024"),
];
const PRIMUS_MOE: &[(Field, &str)] =
    &[(Field::MoeTokenDispatcherType, "alltoall"), (Field::MoeGroupedGemm, "true")];

/// The corresponding defaults of an experiment with `sft_trainer.yaml`.
const PRIMUS_SFT: &[(Field, &str)] =
    &[(Field::MicroBatchSize, "1"), (Field::GlobalBatchSize, "128"), (Field::SeqLength, "2048")];

pub(super) fn defaults(reading: &mut Reading, root: &Node, overrides: &Node) {
    if overrides.get("use_turbo_deepep").and_then(Node::flag) == Some(true) {
        let span = overrides.get("use_turbo_deepep").map(|node| node.span);
        for &(field, value) in
            &[(Field::MoeTokenDispatcherType, "flex"), (Field::MoeFlexDispatcherBackend, "deepep")]
        {
            reading.take(Found::new(field, value, Origin::Script).by("use_turbo_deepep", span));
        }
    }
    let config = trainer(root).and_then(|trainer| trainer.get("config")?.word());
    let tunes = config.is_some_and(|name| without_ending(name) == "sft_trainer");
    let mut all = if tunes { PRIMUS_SFT.to_vec() } else { Vec::new() };
    // If a setting occurs twice, the first one counts.
    all.extend(PRIMUS);
    if reading.value(Field::NumExperts).is_some() {
        all.extend(PRIMUS_MOE);
    }
    if reading.value(Field::TensorModelParallelSize).is_some_and(|degree| degree != "1") {
        all.push((Field::SequenceParallel, "true"));
    }
    for (field, value) in all {
        if !reading.found.iter().any(|found| found.field == field) {
            reading.take(Found::new(field, value, Origin::Default).note("default of Primus"));
        }
    }
}
