//! Settings that other settings spell out: older and shorter forms of the same.

use super::packs::is_slime;
use super::switches::{MOE_LAYERS, SWITCHES};
use super::table::Table;
use crate::SettingValue::{Bool, Int, List, Text};
use shardscope_plan::{AdapterLibrary, Field, Software, Word, word};

/// Replaces older and shorter spellings by the full ones (`arguments.py:validate_args`).
pub(super) fn spell_out(table: &mut Table) {
    for (switch, field, word, rule) in &SWITCHES {
        // Derived: a value stated in the newer spelling wins.
        if table.on(*switch) {
            table.derive_word(*field, word, rule);
        }
    }
    position(table);
    recomputation(table);
    // Also recognised by its own flag, since slime's scripts are otherwise Megatron's; other frameworks that pack by
    // tokens name themselves.
    let names_itself = table.has(Field::RlFramework) || table.is(Software::HfTransformers);
    let by_flag = table.has(Field::MaxTokensPerGpu) && !names_itself;
    if by_flag || is_slime(table) {
        slime(table);
    }
    if table.is(word::Optimizer::DistMuon) {
        // `megatron/core/optimizer/__init__.py`: data-parallel ranks share the layers' states out whatever DDP's own switch says,
        // which recipes turn off beside it.
        let rule = "dist_muon is muon with the distributed optimizer";
        table.overrule(Field::Optimizer, word::Optimizer::Muon.value(), rule);
        table.overrule(Field::UseDistributedOptimizer, Bool(true), rule);
    }
    // Others (Megatron-DeepSpeed among them) have no such rule.
    let megatron =
        table.is_any(&[Software::MegatronLegacy, Software::MegatronCoreLocal, Software::MegatronCoreTe]);
    if megatron && table.on(Field::UseMegatronFsdp) {
        let rule = "Megatron-FSDP turns the distributed optimizer on";
        table.derive(Field::UseDistributedOptimizer, Bool(true), rule);
    }
}

/// What slime and miles always set (`slime/backends/megatron_utils/arguments.py:_set_default_megatron_args`),
/// recognised by the flag for packed samples if not by rollouts.
fn slime(table: &mut Table) {
    if !table.on(Field::Fp16) {
        table.derive(Field::Bf16, Bool(true), "slime trains in bf16 unless --fp16 is given");
    }
    if table.is_unset_or(&[word::Optimizer::Adam]) {
        table.derive(Field::UseDistributedOptimizer, Bool(true), "slime shards Adam's states");
    }
    if table.number(Field::LoraRank) > 0 {
        adapters_of_miles(table);
    }
}

/// miles builds adapters with Megatron-Bridge (`miles/backends/megatron_utils/lora_utils.py:create_lora_instance`), and
/// keeps their gradient buffers during rollouts (`patch_param_grad_buffer_for_colocate_mode_lora`).
fn adapters_of_miles(table: &mut Table) {
    let rule = "miles builds adapters by Megatron-Bridge";
    table.derive(Field::AdapterLibrary, AdapterLibrary::MegatronBridge.value(), rule);
    let moved = table.words(Field::OffloadBetweenPhases);
    if moved.contains(&"gradients") {
        // Frozen weights have no gradient buffers; those of adapters are small and stay in place.
        let left: Vec<_> =
            moved.into_iter().filter(|word| *word != "gradients").map(|word| Text(word.to_owned())).collect();
        let rule = "miles keeps the buffers of adapters' gradients in place";
        table.overrule(Field::OffloadBetweenPhases, List(left), rule);
    }
}

fn position(table: &mut Table) {
    let table_off = table.switch(Field::AddPositionEmbedding) == Some(false);
    // With rotary positions there is no table that the flag could omit.
    if table_off && table.is_unset_or(&[word::PositionEmbeddingType::LearnedAbsolute]) {
        let rule = "--no-position-embedding leaves the table out";
        table.overrule(Field::PositionEmbeddingType, word::PositionEmbeddingType::None.value(), rule);
    }
}

/// torchtitan counts the layers of a stage and recomputes each whose number the period divides
/// (`torchtitan/models/llama3/infra/parallelize.py:_apply_ac_to_transformer_block` of 2025), which leaves the model open until it
/// is named.
fn counted_by_torchtitan(table: &mut Table) {
    if !table.is(Software::Torchtitan) || !table.is(word::RecomputeMethod::Every) {
        return;
    }
    let stages = table.count(Field::PipelineModelParallelSize).unwrap_or(1).max(1);
    let (Some(layers), Some(period)) =
        (table.count(Field::NumLayers), table.count(Field::RecomputeNumLayers))
    else {
        return;
    };
    let rule = format!("one layer in {period} is recomputed");
    let recomputed = (layers / stages / period.max(1)).max(1);
    table.overrule(Field::RecomputeMethod, word::RecomputeMethod::Block.value(), &rule);
    table.overrule(Field::RecomputeNumLayers, Int(recomputed), &rule);
}

fn recomputation(table: &mut Table) {
    counted_by_torchtitan(table);
    if table.on(Field::MoeLayerRecompute) {
        let mut modules = table.words(Field::RecomputeModules);
        // Default of `--recompute-modules`, to which the flag adds.
        if modules.is_empty() {
            modules.push("core_attn");
        }
        if !modules.contains(&"moe") {
            modules.push("moe");
            let modules = modules.into_iter().map(|module| Text(module.to_owned())).collect();
            table.overrule(Field::RecomputeModules, List(modules), MOE_LAYERS);
        }
    }
    // The flag's name indicates the release: parsers with this spelling default to one layer.
    let older_flag = table
        .get(Field::RecomputeMethod)
        .and_then(|setting| setting.flag.as_deref())
        .is_some_and(|flag| flag.trim_start_matches('-') == "activations-checkpoint-method");
    let legacy = table.is_old() || older_flag || table.on(Field::CheckpointActivations);
    if table.is(word::RecomputeGranularity::Full) && legacy {
        table.default(Field::RecomputeNumLayers, Int(1), "default of Megatron-LM up to 23.06");
    }
}
