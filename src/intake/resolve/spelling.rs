//! Settings that other settings spell out: older and shorter ways to say the same.

use super::setting::SettingValue::{Bool, Int, Text};
use super::table::Table;
use crate::plan::Field;

/// Writes older and shorter spellings out (`arguments.py:validate_args`).
pub(super) fn spell_out(table: &mut Table) {
    position(table);
    recomputation(table);
    moe(table);
    if table.on(Field::EnableCudaGraph) {
        table.derive(
            Field::CudaGraphImpl,
            Text("local".to_owned()),
            "--enable-cuda-graph is CUDA graphs of Megatron's own",
        );
    }
    if table.word(Field::Optimizer) == "dist_muon" {
        table.overrule(
            Field::Optimizer,
            Text("muon".to_owned()),
            "dist_muon is muon with the distributed optimizer",
        );
        table.derive(
            Field::UseDistributedOptimizer,
            Bool(true),
            "dist_muon is muon with the distributed optimizer",
        );
    }
    for software in ["megatron_legacy", "megatron_core_local", "megatron_core_te"] {
        if table.word(Field::Software) == software && table.on(Field::UseMegatronFsdp) {
            table.derive(
                Field::UseDistributedOptimizer,
                Bool(true),
                "Megatron-FSDP turns the distributed optimizer on",
            );
        }
    }
}

fn position(table: &mut Table) {
    if table.on(Field::UseRotaryPositionEmbeddings) {
        let rule = "--use-rotary-position-embeddings is --position-embedding-type rope";
        table.derive(Field::PositionEmbeddingType, Text("rope".to_owned()), rule);
    }
    let table_off = table.switch(Field::AddPositionEmbedding) == Some(false);
    if table_off && matches!(table.word(Field::PositionEmbeddingType), "" | "learned_absolute") {
        let rule = "--no-position-embedding leaves the table out";
        table.overrule(Field::PositionEmbeddingType, Text("none".to_owned()), rule);
    }
}

fn recomputation(table: &mut Table) {
    if table.on(Field::CheckpointActivations) {
        let rule = "--checkpoint-activations recomputes every layer";
        table.derive(Field::RecomputeGranularity, Text("full".to_owned()), rule);
        table.derive(Field::RecomputeMethod, Text("uniform".to_owned()), rule);
    }
    if table.on(Field::RecomputeActivations) {
        let rule = "--recompute-activations is --recompute-granularity selective";
        table.derive(Field::RecomputeGranularity, Text("selective".to_owned()), rule);
    }
    if table.on(Field::MoeLayerRecompute) {
        let rule = "--moe-layer-recompute is --recompute-granularity selective with module moe";
        table.derive(Field::RecomputeGranularity, Text("selective".to_owned()), rule);
        let mut modules: Vec<_> =
            table.words(Field::RecomputeModules).into_iter().map(str::to_owned).collect();
        if modules.is_empty() {
            modules.push("core_attn".to_owned());
        }
        if !modules.iter().any(|module| module == "moe") {
            modules.push("moe".to_owned());
            let modules = super::SettingValue::List(modules.into_iter().map(Text).collect());
            table.overrule(Field::RecomputeModules, modules, rule);
        }
    }
    let legacy = matches!(table.word(Field::Software), "megatron_legacy" | "megatron_deepspeed");
    if table.word(Field::RecomputeGranularity) == "full" && (legacy || table.on(Field::CheckpointActivations))
    {
        table.default(Field::RecomputeNumLayers, Int(1), "default of Megatron-LM up to 23.06");
    }
}

fn moe(table: &mut Table) {
    if table.on(Field::MoeEnableDeepep) {
        let rule = "--moe-enable-deepep is the flex dispatcher with DeepEP";
        table.derive(Field::MoeFlexDispatcherBackend, Text("deepep".to_owned()), rule);
    }
}
