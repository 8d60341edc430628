//! What is not modelled of modules of plain PyTorch that ranks share, or that are computed again one by one.

use super::precision::lacks_bf16;
use super::table::Table;
use crate::{Effect, Origin};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, Software};

/// A model of plain PyTorch modules that is cut over ranks. Without it the ranks hold copies, which go on with data alone.
pub(super) fn cut(table: &mut Table, software: Software) {
    if software == Software::Scaletorch {
        let message = "what ScaleTorch's modules save, which was not recorded; only its step times are known";
        table.lack(Field::Software, software.name(), Effect::Memory, message);
    }
    if software.semantics().cuts_models {
        return;
    }
    let adapted = matches!(table.word(Field::TrainType), "lora" | "qlora" | "freeze");
    let by_modules = table.word(Field::RecomputeGranularity) == "selective";
    let planned = table.on(Field::DtensorPlan) && !adapted && !by_modules;
    for (field, what) in [
        (Field::TensorModelParallelSize, "tensor parallelism with plain PyTorch modules (DTensor)"),
        (Field::PipelineModelParallelSize, "pipelines of plain PyTorch modules"),
        (Field::ExpertModelParallelSize, "expert parallelism with plain PyTorch modules"),
    ] {
        let degree = table.degree(field);
        if degree > 1 && !(planned && field == Field::TensorModelParallelSize) {
            table.lack(field, &degree.to_string(), Effect::Memory, what);
        }
    }
}

/// Modules of plain PyTorch that are computed again one by one: known where attention, MLP and norms are, of dense layers that train.
pub(super) fn one_by_one(table: &mut Table, software: Software) {
    if !software.semantics().eager_modules || table.word(Field::RecomputeGranularity) != "selective" {
        return;
    }
    let modules = table.words(Field::RecomputeModules);
    let all =
        modules.len() == 3 && ["self_attn", "mlp", "layernorm"].iter().all(|name| modules.contains(name));
    let whole = matches!(table.word(Field::TrainType), "" | "full");
    let plain = table.word(Field::UnrecordedModules).is_empty()
        && !table.has(Field::VisionTower)
        && !table.has(Field::LinearMixer)
        && table.number(Field::NumExperts) == 0;
    let llama = table.words(Field::ModuleVariants).is_empty() && !table.on(Field::PostNorms);
    let known = match software {
        Software::HfTransformers | Software::Automodel => all && llama,
        // Of OLMo-core's own blocks, whose norms stand where they stand, the MLP alone is recorded, within compiled layers.
        Software::OlmoCore => modules == ["mlp"] && table.on(Field::CompiledLayers),
        _ => false,
    };
    if !(whole && plain && known) || has_liger(table) {
        let message =
            "modules recomputed one by one, other than attention, MLP and norms of trained dense layers";
        table.lack(Field::RecomputeModules, "", Effect::Memory, message);
    }
}

/// Whether some of Liger's kernels stand in the place of transformers'.
pub(super) fn has_liger(table: &Table) -> bool {
    table.on(Field::LigerKernel) || table.has(Field::LigerParts)
}

/// Rollouts by the model that trains: known of dense layers of transformers with a gated MLP and rotated heads, whole on each
/// accelerator or gathered by ZeRO-3 (`tests/data/activations/generation_peak.tsv`).
pub(super) fn own_rollouts(table: &mut Table) {
    if table.word(Field::RolloutEngine) != "transformers" {
        return;
    }
    let plain = table.word(Field::UnrecordedModules).is_empty()
        && table.words(Field::ModuleVariants).is_empty()
        && ![Field::VisionTower, Field::LinearMixer, Field::AttentionWindow]
            .into_iter()
            .any(|field| table.has(field))
        && ![Field::PostNorms, Field::MultiLatentAttention, Field::FusedGateUp]
            .into_iter()
            .any(|field| table.on(field))
        && table.number(Field::NumExperts) == 0
        && table.on(Field::Swiglu);
    let widths = matches!(table.word(Field::BaseQuantization), "" | "none" | "nf4" | "fp4");
    if !table.has(Field::HiddenSize) {
        return;
    }
    // `trl/trainer/grpo_config.py:__post_init__` refuses it; until 0.15 a batch was one of prompts, each with so many rollouts.
    let own =
        [Field::MicroBatchSize, Field::NumMicroBatches].map(|field| table.degree(field)).iter().product();
    let rows: u64 = table.count(Field::RolloutSequences).unwrap_or(own);
    let of_prompt = table.degree(Field::RolloutsPerPrompt);
    let machines = table.count(Field::NumNodes).zip(table.count(Field::GpusPerNode));
    let world = table.count(Field::WorldSize).or(machines.map(|(nodes, gpus)| nodes.saturating_mul(gpus)));
    if let Some(world) = world
        && !rows.saturating_mul(world).is_multiple_of(of_prompt)
    {
        let message =
            "a rollout round that is not a multiple of the rollouts per prompt, as in TRL until 0.15";
        table.lack(Field::RolloutsPerPrompt, &of_prompt.to_string(), Effect::Memory, message);
    }
    let message = if table.on(Field::UseDora) || !widths {
        "rollouts by the training model (no vLLM) with these adapters or this base model"
    } else if !plain {
        "rollouts by the training model (no vLLM) with layers other than Llama's"
    } else if table.word(Field::AttnImplementation) == "eager" {
        "rollouts by the training model (no vLLM) with eager attention, whose scores grow with the prompts"
    } else if table.word(Field::DataParallelEngine).starts_with("fsdp") {
        "rollouts by an FSDP-sharded training model (no vLLM)"
    } else {
        return;
    };
    table.lack(Field::RolloutEngine, "transformers", Effect::Memory, message);
}

/// Under prime-rl Llama's and Qwen3's modules are those of transformers once more, and what backward holds of them where they are
/// compiled with their checkpoint was recorded. Of its experts, states and others, and of what it takes from transformers itself, nothing
/// was.
pub(super) fn compiled(table: &mut Table, software: Software) {
    // `unsloth/models/rl.py`: "Model is in float16 precision but you want to use bfloat16".
    let stated = |origin| !matches!(origin, Origin::Default | Origin::Derived);
    let bf16 = table.get(Field::Bf16).is_some_and(|setting| stated(setting.origin)) && table.on(Field::Bf16);
    if software == Software::Unsloth && bf16 && lacks_bf16(table) {
        let message = "bf16 on an accelerator without it, which unsloth rejects";
        table.lack(Field::Bf16, "true", Effect::Memory, message);
    }
    if software == Software::Unsloth && table.on(Field::CompiledLayers) {
        by_unsloth(table);
    } else if software == Software::Unsloth
        && lacks_bf16(table)
        && !catalog::is_turing(table.word(Field::Accelerator))
    {
        // `unsloth_zoo/compiler.py:lm_head_on_old_cuda_arch`.
        let message = "a loss that unsloth does not compile, on an accelerator before Turing";
        table.lack(Field::Accelerator, "", Effect::Memory, message);
    }
    let tiled = table.says(Field::LossKind, "tiled");
    let checkpointed = table.on(Field::CompiledCheckpoints);
    let others = table.number(Field::NumExperts) > 0
        || table.on(Field::MultiLatentAttention)
        || table.has(Field::LinearMixer)
        || table.on(Field::FinalSoftcap)
        || table.on(Field::AddQkvBias)
        || table.on(Field::PostNorms)
        || table.on(Field::NormsOverHeads)
        || !table.words(Field::ModuleVariants).is_empty()
        || !table.word(Field::UnrecordedModules).is_empty()
        || software != Software::HfTransformers;
    if (tiled || checkpointed) && others {
        let message = "layers other than Llama's and Qwen3's, compiled or before a tiled loss (prime-rl)";
        let field = if checkpointed { Field::CompiledCheckpoints } else { Field::LossKind };
        table.lack(field, "", Effect::Memory, message);
    }
    let frozen = matches!(table.word(Field::TrainType), "lora" | "qlora" | "freeze");
    let whole = table.on(Field::GradientCheckpointing) || table.word(Field::RecomputeGranularity) == "full";
    if checkpointed && (frozen || !whole) {
        let message = "compiled layers without full checkpointing or with frozen weights";
        table.lack(Field::CompiledCheckpoints, "", Effect::Memory, message);
    }
}

/// Preferences whose log-probabilities come of last hidden states are those of unsloth, which has them in no other way.
pub(super) fn scored_states(table: &mut Table, software: Software) {
    let states = ["states", "all_states", "labelled_states", "states_orpo"];
    let of_states = states.contains(&table.word(Field::PreferenceLogits));
    let compares = table.says(Field::TrainingObjective, "dpo");
    if compares && of_states != (software == Software::Unsloth) {
        let value = table.word(Field::PreferenceLogits).to_owned();
        let message = "a preference loss that takes its logits in this way, in this software";
        table.lack(Field::PreferenceLogits, &value, Effect::Memory, message);
    }
}

/// Layers that unsloth compiles were recorded beside adapters without dropout, in bf16 and, of Qwen's models, in fp16, which it computes in
/// on Turing. There a model on its list runs in fp32, and no layer of it is compiled as a whole (`unsloth_zoo/model_lists.py:FORCE_FLOAT32`,
/// `unsloth/models/_block_compile.py:patch_block_compile`); of those recorded these are Gemma's, which attend by flex attention.
fn by_unsloth(table: &mut Table) {
    let in_fp32 = table.says(Field::AttnImplementation, "flex_attention");
    if lacks_bf16(table) && (in_fp32 || !catalog::is_turing(table.word(Field::Accelerator))) {
        let message = "layers that unsloth compiles, on an accelerator without bf16";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
    if table.real(Field::LoraDropout).is_some_and(|share| share > 0.0) {
        let message = "LoRA dropout in layers that unsloth compiles";
        table.lack(Field::LoraDropout, "", Effect::Memory, message);
    }
}
