//! Optimizers that project gradients to a lower rank (GaLore, APOLLO): for which layers, and where they are supported.

use super::sharding::ask_for_optimizer;
use super::table::Table;
use crate::Effect;
use crate::SettingValue::Int;
use shardscope_plan::{
    Field, LinearModule, LoraModules, LowRank, LowRankUpdate, ProjectedSide, Projection, Software, Word, word,
};

/// The default rank in transformers (`transformers/trainer_optimizer.py:_get_galore_optimizer, _get_apollo_optimizer`).
const RANK: u64 = 128;

/// Linear layers of a decoder by their paths within it, in models with Llama's names.
const PATHS: [(&str, LinearModule); 12] = [
    ("self_attn.q_proj", LinearModule::Query),
    ("self_attn.k_proj", LinearModule::Key),
    ("self_attn.v_proj", LinearModule::Value),
    ("self_attn.o_proj", LinearModule::Output),
    ("self_attn.q_a_proj", LinearModule::QueryDown),
    ("self_attn.q_b_proj", LinearModule::QueryUp),
    ("self_attn.kv_a_proj_with_mqa", LinearModule::KeyValueDown),
    ("self_attn.kv_b_proj", LinearModule::KeyValueUp),
    ("mlp.gate_proj", LinearModule::Gate),
    ("mlp.up_proj", LinearModule::Up),
    ("mlp.down_proj", LinearModule::Down),
    ("lm_head", LinearModule::OutputLayer),
];

/// The optimizer, if it projects gradients.
fn projecting(table: &Table) -> Option<word::Optimizer> {
    use word::Optimizer::{Apollo, ApolloSvd, GaLore, GaLore8Bit};
    table.chosen().filter(|optimizer| matches!(optimizer, GaLore | GaLore8Bit | Apollo | ApolloSvd))
}

/// The layers selected by a target: all with the target in their path
/// (`transformers/trainer_utils.py:check_target_module_exists`); none if it is a pattern of another kind.
fn matched(target: &str) -> Option<LoraModules> {
    match target {
        // Every linear layer, including the output layer; LLaMA-Factory's keyword excludes it.
        "all-linear" => return Some(LoraModules::ALL.with(LinearModule::OutputLayer)),
        "all" => return Some(LoraModules::ALL),
        _ => {}
    }
    let part = target.trim_start_matches(".*").trim_end_matches(".*").trim_matches('.');
    let plain = part.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'));
    let found = PATHS.iter().filter(|(path, _)| path.contains(part));
    let modules = found.fold(LoraModules::default(), |all, (_, module)| all.with(*module));
    (plain && !part.is_empty() && !modules.is_empty()).then_some(modules)
}

/// The layers that the settings name, or the first name that means something else.
fn modules(table: &Table) -> Result<LoraModules, String> {
    let mut all = LoraModules::default();
    for target in table.words(Field::OptimTargets) {
        let modules = matched(target).ok_or(target)?;
        let chosen = PATHS.iter().filter(|(_, module)| modules.has(*module));
        all = chosen.fold(all, |all, (_, module)| all.with(*module));
    }
    if all.is_empty() { Err("no layer".to_owned()) } else { Ok(all) }
}

/// Reports where such an optimizer is not supported.
pub(super) fn lacking(table: &mut Table, software: Software) {
    let Some(optimizer) = projecting(table) else { return };
    let unlike = table.number(Field::NumExperts) > 0
        || table.has(Field::LinearMixer)
        || table.has(Field::VisionTower)
        || table.on(Field::FusedQkv)
        || table.number(Field::MtpNumLayers) > 0;
    let engine = table.is_any(&[
        word::DataParallelEngine::Fsdp1,
        word::DataParallelEngine::Fsdp2,
        word::DataParallelEngine::DeepSpeed,
    ]);
    let part = !table.is_unset_or(&[word::TrainType::Full]);
    let what = if software != Software::HfTransformers {
        "gradients projected to a lower rank, in this software; Adam's states would be counted".to_owned()
    } else if engine || table.number(Field::ZeroStage) > 0 {
        "gradients projected to a lower rank over sharded or flattened weights".to_owned()
    } else if table.on(Field::StepInBackward)
        && (table.number(Field::WorldSize) > 1 || table.number(Field::NumMicroBatches) > 1)
    {
        "updates layer by layer on several GPUs or with gradient accumulation, which the Trainer rejects"
            .to_owned()
    } else if part {
        "gradients projected to a lower rank where part of the model trains".to_owned()
    } else if unlike {
        "gradients projected to a lower rank in layers that differ from Llama's".to_owned()
    } else if let Err(name) = modules(table) {
        format!("gradients projected to a lower rank of layers named {name}")
    } else {
        return;
    };
    table.lack(Field::Optimizer, optimizer.word(), Effect::Memory, &what);
    ask_for_optimizer(table);
}

/// How the optimizer projects gradients.
pub(super) fn low_rank(table: &mut Table) -> Option<LowRank> {
    let optimizer = projecting(table)?;
    let modules = modules(table).ok()?;
    let whose = "default of transformers' Trainer";
    table.default(Field::OptimRank, Int(RANK), whose);
    table.default(Field::OptimProjection, ProjectedSide::default().value(), whose);
    let scales = matches!(optimizer, word::Optimizer::Apollo | word::Optimizer::ApolloSvd);
    Some(LowRank {
        rank: table.number(Field::OptimRank),
        modules,
        side: table.chosen().unwrap_or_default(),
        projection: if optimizer == word::Optimizer::Apollo {
            Projection::Random
        } else {
            Projection::Singular
        },
        update: if scales { LowRankUpdate::ScalesGradient } else { LowRankUpdate::ProjectedBack },
        vectors_first: table.on(Field::OptimVectorsFirst),
    })
}

#[cfg(test)]
mod tests {
    use super::matched;
    use shardscope_plan::{LinearModule, LoraModules};

    #[test]
    fn targets_mean_the_layers_whose_paths_have_them() {
        let attention = |target: &str| {
            let modules = matched(target).expect("a target");
            [LinearModule::Query, LinearModule::Output, LinearModule::Gate, LinearModule::OutputLayer]
                .map(|module| modules.has(module))
        };
        for target in ["attn", "self_attn", ".*.attn.*", ".*attn.*"] {
            assert_eq!(attention(target), [true, true, false, false], "{target}");
        }
        assert_eq!(attention("mlp"), [false, false, true, false]);
        assert_eq!(attention("q_proj"), [true, false, false, false]);
        assert_eq!(attention("proj"), [true, true, true, false]);
        assert_eq!(attention("all"), [true, true, true, false]);
        assert_eq!(attention("all-linear"), [true, true, true, true]);
        for target in ["", "layers.[0-9]+.mlp", "block_sparse_moe", "(attn|mlp)"] {
            assert_eq!(matched(target).map(LoraModules::is_empty), None, "{target}");
        }
    }
}
