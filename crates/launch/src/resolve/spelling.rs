//! Settings that other settings spell out: older and shorter ways to say the same.

use super::setting::SettingValue::{Bool, Int, List, Text};
use super::table::Table;
use shardscope_plan::Field;

/// Switches that stand for a word of another setting, and why.
const SWITCHES: [(Field, Field, &str, &str); 7] = [
    (
        Field::EnableCudaGraph,
        Field::CudaGraphImpl,
        "local",
        "--enable-cuda-graph is CUDA graphs of Megatron's own",
    ),
    (
        Field::UseRotaryPositionEmbeddings,
        Field::PositionEmbeddingType,
        "rope",
        "--use-rotary-position-embeddings is --position-embedding-type rope",
    ),
    (Field::CheckpointActivations, Field::RecomputeGranularity, "full", EVERY_LAYER),
    (Field::CheckpointActivations, Field::RecomputeMethod, "uniform", EVERY_LAYER),
    (
        Field::RecomputeActivations,
        Field::RecomputeGranularity,
        "selective",
        "--recompute-activations is --recompute-granularity selective",
    ),
    (Field::MoeLayerRecompute, Field::RecomputeGranularity, "selective", MOE_LAYERS),
    (
        Field::MoeEnableDeepep,
        Field::MoeFlexDispatcherBackend,
        "deepep",
        "--moe-enable-deepep is the flex dispatcher with DeepEP",
    ),
];

/// Whether what the user sets says something else than this switch of the text stands for, which is then left out.
pub(super) fn is_overruled(switch: Field, overrides: &[(String, String)]) -> bool {
    let Some((_, field, word, _)) = SWITCHES.iter().find(|(known, ..)| *known == switch) else {
        return false;
    };
    overrides.iter().any(|(name, value)| Field::named(name) == Some(*field) && value != word)
}

const EVERY_LAYER: &str = "--checkpoint-activations recomputes every layer";
const MOE_LAYERS: &str = "--moe-layer-recompute is --recompute-granularity selective with module moe";

/// Writes older and shorter spellings out (`arguments.py:validate_args`).
pub(super) fn spell_out(table: &mut Table) {
    for (switch, field, word, rule) in &SWITCHES {
        if table.on(*switch) {
            table.derive_word(*field, word, rule);
        }
    }
    position(table);
    recomputation(table);
    if table.has(Field::MaxTokensPerGpu) {
        slime(table);
    }
    if table.says(Field::Optimizer, "dist_muon") {
        let rule = "dist_muon is muon with the distributed optimizer";
        table.overrule(Field::Optimizer, Text("muon".to_owned()), rule);
        table.derive(Field::UseDistributedOptimizer, Bool(true), rule);
    }
    let megatron = ["megatron_legacy", "megatron_core_local", "megatron_core_te"];
    if table.choice(Field::Software, &megatron) > 0 && table.on(Field::UseMegatronFsdp) {
        let rule = "Megatron-FSDP turns the distributed optimizer on";
        table.derive(Field::UseDistributedOptimizer, Bool(true), rule);
    }
}

/// What slime and miles set whatever is said (`slime/backends/megatron_utils/arguments.py:_set_default_megatron_args`),
/// told by the flag of their packed samples.
fn slime(table: &mut Table) {
    if !table.on(Field::Fp16) {
        table.derive(Field::Bf16, Bool(true), "slime trains in bf16 unless --fp16 is given");
    }
    if matches!(table.word(Field::Optimizer), "" | "adam") {
        table.derive(Field::UseDistributedOptimizer, Bool(true), "slime shards Adam's states");
    }
}

fn position(table: &mut Table) {
    let table_off = table.switch(Field::AddPositionEmbedding) == Some(false);
    if table_off && matches!(table.word(Field::PositionEmbeddingType), "" | "learned_absolute") {
        let rule = "--no-position-embedding leaves the table out";
        table.overrule(Field::PositionEmbeddingType, Text("none".to_owned()), rule);
    }
}

fn recomputation(table: &mut Table) {
    if table.on(Field::MoeLayerRecompute) {
        let mut modules = table.words(Field::RecomputeModules);
        if modules.is_empty() {
            modules.push("core_attn");
        }
        if !modules.contains(&"moe") {
            modules.push("moe");
            let modules = modules.into_iter().map(|module| Text(module.to_owned())).collect();
            table.overrule(Field::RecomputeModules, List(modules), MOE_LAYERS);
        }
    }
    let older_flag = table
        .get(Field::RecomputeMethod)
        .and_then(|setting| setting.flag.as_deref())
        .is_some_and(|flag| flag.trim_start_matches('-') == "activations-checkpoint-method");
    let legacy = table.is_old() || older_flag || table.on(Field::CheckpointActivations);
    if table.says(Field::RecomputeGranularity, "full") && legacy {
        table.default(Field::RecomputeNumLayers, Int(1), "default of Megatron-LM up to 23.06");
    }
}
