//! Reinforcement-learning rollouts, from the settings.

use super::table::Table;
use crate::Origin;
use crate::SettingValue::{Bool, Int, Real};
use shardscope_catalog as catalog;
use shardscope_plan::{
    Field, NumberFormat, Offloads, Residence, RlFramework, Rollout, RolloutEngine, sampling_bytes,
};
use shardscope_source::Code;
use shardscope_units::Bytes;

/// Fraction of memory that an engine uses by default: vLLM's `gpu_memory_utilization` (`vllm/config/cache.py`), and the
/// result of SGLang's sizes on accelerators with 80 GB (`sglang/srt/server_args.py`).
const FRACTIONS: [(RolloutEngine, f64); 2] = [(RolloutEngine::Vllm, 0.9), (RolloutEngine::Sglang, 0.88)];
/// Sequences that vLLM and SGLang decode at once from CUDA graphs on accelerators with 80 GB by default
/// (`vllm/config/scheduler.py`, `sglang/srt/server_args.py:cuda_graph_max_bs`).
const SEQUENCES: u64 = 256;

/// Fractions of memory that unsloth gives vLLM if its cache is freed while the model trains, by minimum device memory
/// (`unsloth_zoo/vllm_utils.py:load_vllm`, `standby_target_gpu_util`, for vLLM 0.11 and later, where each is multiplied
/// by 0.95).
const STANDBY: [(Bytes, f64); 5] = [
    (Bytes::gib(40), 0.925),
    (Bytes::gib(25), 0.9),
    (Bytes::gib(20), 0.825),
    (Bytes::gib(14), 0.8),
    (Bytes::gib(10), 0.775),
];
const STANDBY_BELOW: f64 = 0.75;
const STANDBY_OF_NEW: f64 = 0.95;

/// The fraction for a device whose driver reports `memory`. PyTorch sees less, because the driver keeps at most half a
/// GiB on the accelerators of the catalog (an A100 of 40 GB has 39.5 GiB), so a device falls into the tier below its
/// label.
fn standby_share(memory: Bytes) -> f64 {
    const DRIVER: Bytes = Bytes::mib(512);
    let seen = memory.less(DRIVER);
    let tier = STANDBY.iter().find(|(least, _)| seen >= *least);
    tier.map_or(STANDBY_BELOW, |(_, share)| *share) * STANDBY_OF_NEW
}

/// If the batch itself is not stated, a step takes a part of the round's rollouts (slime, `--num-steps-per-rollout`).
pub(super) fn batch(table: &mut Table) {
    let (Some(prompts), Some(steps)) = (table.count(Field::RolloutPrompts), table.count(Field::RolloutSteps))
    else {
        return;
    };
    // Per step: the rollouts of a round are divided among its optimizer steps.
    let sequences = prompts.saturating_mul(table.degree(Field::RolloutsPerPrompt)) / steps.max(1);
    let rule = "prompts x rollouts per prompt / optimizer steps per round";
    table.derive(Field::GlobalBatchSize, Int(sequences.max(1)), rule);
}

/// Whether vLLM runs on an accelerator of its own beside those that train, as in TRL 0.14 and 0.15 and programs made of them, whose reader
/// says so.
fn has_own_engine(table: &Table) -> bool {
    table.is(RlFramework::Trl) && table.count(Field::RolloutGpus) == Some(1) && !is_set(table)
}

fn is_set(table: &Table) -> bool {
    table.get(Field::RolloutGpus).is_some_and(|setting| setting.origin == Origin::User)
}

/// The most accelerators of a node of `usual` that can train beside such an engine, one of which it takes (`trl/trainer/grpo_trainer.py`
/// of 0.15: `cuda:{num_processes}`).
pub(super) fn beside_own_engine(table: &Table, usual: u64) -> Option<u64> {
    let all = usual.checked_sub(1).filter(|all| *all > 0 && has_own_engine(table))?;
    let whole = |ranks: &u64| {
        let batch = table.degree(Field::MicroBatchSize).saturating_mul(*ranks);
        batch.is_multiple_of(table.degree(Field::RolloutsPerPrompt))
    };
    Some((1..=all).rev().find(whole).unwrap_or(all))
}

/// A micro-batch of all ranks holds whole groups of rollouts, or TRL stops (`trl/trainer/grpo_trainer.py` of 0.15: "The global train batch
/// size … must be evenly divisible by the number of generations per prompt"). 0.14 has the engine's device, too, and batches of prompts.
pub(super) fn groups(table: &mut Table, data: u64) {
    let stated =
        table.get(Field::RolloutGpus).is_some_and(|setting| matches!(setting.origin, Origin::Script));
    if !stated || !has_own_engine(table) {
        return;
    }
    let (Some(micro), Some(group)) = (
        table.count(Field::MicroBatchSize),
        table.count(Field::RolloutsPerPrompt).filter(|group| *group > 0),
    ) else {
        return;
    };
    let batch = micro.saturating_mul(data);
    if !batch.is_multiple_of(group) {
        let fields = [Field::MicroBatchSize, Field::RolloutsPerPrompt, Field::DataParallelSize];
        let message = format!(
            "micro batch {micro} x DP {data} = {batch} is no multiple of the {group} rollouts of a prompt (num_generations): TRL 0.15 stops there, and 0.14, whose batches count prompts, is not modelled"
        );
        let hint = "another number of GPUs, micro-batch or num_generations would do";
        table.refuse(Code::GlobalBatch, &fields, message, hint);
    }
}

/// The rollouts described by the settings; none if no reinforcement-learning framework is named.
pub(super) fn rollout(table: &mut Table, sequence: u64) -> Option<Rollout> {
    let framework = table.chosen::<RlFramework>()?;
    let engine = table.chosen().unwrap_or(RolloutEngine::Vllm);
    let whose = format!("default of {}", engine.name());
    let usual = FRACTIONS.iter().find(|(known, _)| *known == engine).map_or(0.9, |(_, fraction)| *fraction);
    if engine == RolloutEngine::Transformers {
        let rows = table.degree(Field::MicroBatchSize).saturating_mul(table.degree(Field::NumMicroBatches));
        let rule = "micro-batch x gradient accumulation steps: a round of rollouts for each optimizer step";
        table.derive(Field::RolloutSequences, Int(rows), rule);
        table.derive(Field::RolloutSleep, Bool(true), "its KV cache is freed while it trains");
    } else {
        table.default(Field::RolloutMemoryFraction, Real(usual), &whose);
        table.default(Field::RolloutTensorParallelSize, Int(1), &whose);
        table.default(Field::RolloutSequences, Int(SEQUENCES), &whose);
        table.default(Field::RolloutCudaGraphs, Bool(true), &whose);
        table.default(Field::RolloutDtype, NumberFormat::Bf16.value(), &whose);
    }
    if framework == RlFramework::Unsloth && table.on(Field::RolloutSleep) {
        let memory =
            catalog::accelerator(table.word(Field::Accelerator)).map_or(Bytes::ZERO, |found| found.memory);
        let rule =
            "unsloth sets the engine's share by the GPU's memory where its cache is freed while it trains";
        table.overrule(Field::RolloutMemoryFraction, Real(standby_share(memory)), rule);
    }
    table.default(Field::RolloutsPerPrompt, Int(1), "unless given");
    table.derive(Field::RolloutLength, Int(sequence), "as long as the training sequences");
    table.default(Field::RolloutSleep, Bool(false), "unless given");
    let sleeps = table.on(Field::RolloutSleep);
    // slime counts the engine's accelerators even with --colocate, and without it gives the engine some of its own; 0
    // if it starts none.
    let own = match (framework, table.count(Field::RolloutGpus)) {
        (RlFramework::Slime, Some(0)) => Some(0),
        // Colocated (`sleeps`): the engine shares the trainer's accelerators, whatever number is stated for it.
        (RlFramework::Slime, _) if sleeps => None,
        (RlFramework::Slime, stated) => Some(stated.unwrap_or(1)),
        (_, stated) => stated,
    };
    let offloaded: Vec<String> =
        table.words(Field::OffloadBetweenPhases).into_iter().map(str::to_owned).collect();
    let offloads = |what: &str| offloaded.iter().any(|word| word == what);
    let residence = |table: &Table, field| Residence::named(table.word(field)).unwrap_or_default();
    Some(Rollout {
        framework,
        engine,
        tensor: table.degree(Field::RolloutTensorParallelSize),
        fraction: table.real(Field::RolloutMemoryFraction).unwrap_or(usual).clamp(0.0, 1.0),
        own_gpus: own,
        sleeps,
        graphs: table.on(Field::RolloutCudaGraphs),
        sequences: table.number(Field::RolloutSequences).max(1),
        weights: table.format(Field::RolloutDtype).unwrap_or(NumberFormat::Bf16),
        offloads: Offloads {
            weights: offloads("weights"),
            gradients: offloads("gradients"),
            optimizer: offloads("optimizer"),
        },
        reference: residence(table, Field::RlReference),
        critic: residence(table, Field::RlCritic),
        critic_recomputes: !table.has(Field::RlCriticRecompute) || table.on(Field::RlCriticRecompute),
        critic_batch: table.count(Field::RlCriticMicroBatch),
        per_prompt: table.number(Field::RolloutsPerPrompt).max(1),
        length: table.number(Field::RolloutLength).max(1),
        sampling: sampling_bytes(&table.words(Field::RolloutSampling)),
        response: table.number(Field::RolloutResponse),
        entropy: table.on(Field::PolicyEntropy),
        copies_all: table.on(Field::CopyWholeModel),
    })
}
