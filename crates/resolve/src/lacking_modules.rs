//! Unsupported cases of plain PyTorch modules that are sharded over ranks, or that are recomputed one by one.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, RolloutEngine, Software, word};

/// A model of plain PyTorch modules that is sharded over ranks. Without it the ranks hold copies, which continue with
/// only data parallelism.
pub(super) fn cut(table: &mut Table, software: Software) {
    if software == Software::Scaletorch {
        let message = "what ScaleTorch's modules save, which was not recorded; only its step times are known";
        table.lack(Field::Software, software.name(), Effect::Memory, message);
    }
    if software.semantics().cuts_models {
        return;
    }
    let by_modules = table.is(word::RecomputeGranularity::Selective);
    let cut = table.on(Field::SequenceParallel);
    // A sharded sequence reaches Automodel's own compiled norms as a DTensor, and is gathered for each projection under
    // NeMo-RL's plan.
    let recorded = match table.chosen::<word::TrainType>() {
        Some(word::TrainType::Lora) => adapted_by_dtensor(table) && !by_modules && !cut,
        Some(word::TrainType::QLora | word::TrainType::Freeze) => false,
        _ if software == Software::Automodel => !cut,
        _ => !by_modules,
    };
    let planned = table.on(Field::DtensorPlan) && recorded;
    for (field, what) in [
        (Field::TensorModelParallelSize, "tensor parallelism with plain PyTorch modules (DTensor)"),
        (Field::PipelineModelParallelSize, "pipelines of plain PyTorch modules"),
        (Field::ExpertModelParallelSize, "expert parallelism with plain PyTorch modules"),
    ] {
        let degree = table.degree(field);
        let known = match field {
            Field::TensorModelParallelSize => planned,
            Field::ExpertModelParallelSize => software.semantics().modules.dispatches_experts,
            _ => false,
        };
        if degree > 1 && !known {
            table.lack(field, &degree.to_string(), Effect::Memory, what);
        }
    }
}

/// What modules of some model types do in some software, or with some attention, and no recorded run shows.
fn of_types(table: &mut Table, software: Software) {
    let modules = software.semantics().eager_modules;
    let variants = table.listed::<word::ModuleVariant>();
    let differs = |variant| variants.contains(&variant);
    // The layers of other software have norms with weights, no clamps, and activations without weights.
    let only_there = [
        (
            word::ModuleVariant::NormsWithoutWeights,
            "norms_without_weights",
            "norms without weights (OLMo's first models)",
        ),
        (
            word::ModuleVariant::ClippedQueries,
            "clipped_queries",
            "clamped queries, keys and values (clip_qkv)",
        ),
        (word::ModuleVariant::Xielu, "xielu", "an activation function with weights of its own (xIELU)"),
    ];
    super::lacking_heads::lacking(table, software);
    let (words, parts): (Vec<&str>, Vec<&str>) = only_there
        .into_iter()
        .filter(|(variant, ..)| !modules && differs(*variant))
        .map(|(_, word, what)| (word, what))
        .unzip();
    if !words.is_empty() {
        let message = format!("{} in this software", parts.join(", "));
        table.lack(Field::ModuleVariants, &words.join(" "), Effect::Memory, &message);
    }
    // `sdp_utils_cpp.h:check_batch_size_and_num_heads_dense` refused a single key head for many queries until
    // pytorch/pytorch#191085; Falcon does not repeat it, unlike `sdpa_attention_forward`.
    let one = table.count(Field::NumQueryGroups) == Some(1);
    if modules && one && differs(word::ModuleVariant::IndexedQkv) && table.is(word::AttnImplementation::Sdpa)
    {
        let message = "SDPA of one key head, for which torch had no fused kernel before 2026 and kept all scores; flash_attention_2 and eager are modelled";
        table.lack(Field::AttnImplementation, "sdpa", Effect::Memory, message);
    }
}

/// Experts of Automodel's own modules: recorded for Qwen3's and DeepSeek-V3's, fully trained in bf16 behind DeepEP's
/// exchange within a node (`tests/record/automodel_experts.py`; for other groups of ranks DeepEP recommends no
/// configuration, or sends between nodes).
pub(super) fn dispatched(table: &mut Table, software: Software) {
    of_types(table, software);
    if table.is(word::LossKind::TorchNarrow) && !software.semantics().eager_modules {
        table.lack(
            Field::LossKind,
            "torch_narrow",
            Effect::Memory,
            "torch's loss over 16-bit logits in this software",
        );
    }
    if table.on(Field::MoeBalancedGate) && !software.semantics().modules.dispatches_experts {
        let message = "a gate that spreads tokens evenly, in this software";
        table.lack(Field::MoeBalancedGate, "", Effect::Memory, message);
    }
    if !software.semantics().modules.dispatches_experts || table.number(Field::NumExperts) == 0 {
        return;
    }
    let degree = table.degree(Field::ExpertModelParallelSize);
    let flex = table.is(word::MoeTokenDispatcherType::Flex);
    if !flex || !matches!(degree, 2 | 4 | 8) {
        let message =
            "Automodel's own experts other than behind DeepEP's exchange between 2, 4 or 8 ranks of a node";
        table.lack(Field::ExpertModelParallelSize, &degree.to_string(), Effect::Memory, message);
    }
    let known = [word::ModuleVariant::Fp32SigmoidRouter];
    let others = table.listed().iter().any(|variant| !known.contains(variant));
    let odd = [
        Field::PostNorms,
        Field::NormsBehind,
        Field::NormsOverHeads,
        Field::MoeSharedExpertGate,
        Field::AttentionOutputGate,
        Field::AddQkvBias,
    ];
    let latent = table.on(Field::MultiLatentAttention);
    let partial = table.real(Field::RotaryPercent).is_some_and(|share| share < 1.0);
    let unlike = others
        || odd.into_iter().any(|field| table.on(field))
        || table.number(Field::MtpNumLayers) > 0
        || [Field::LinearMixer, Field::AttentionWindow, Field::MoeLatentSize, Field::VisionTower]
            .into_iter()
            .any(|field| table.has(field))
        || !table.word(Field::UnrecordedModules).is_empty()
        || (!latent && (partial || !table.on(Field::QkLayernorm)))
        || !table.on(Field::NormalizedRouting);
    if unlike {
        let message = "experts of Automodel's own modules in a model other than Qwen3's and DeepSeek-V3's";
        table.lack(Field::NumExperts, "", Effect::Memory, message);
    }
    let full = table.is_unset_or(&[word::TrainType::Full]);
    if !full {
        let message = "adapters beside Automodel's own experts";
        table.lack(Field::TrainType, "", Effect::Memory, message);
    }
    let stage_two = table.is(word::DataParallelEngine::Fsdp2) && table.number(Field::ZeroStage) == 2;
    if !stage_two {
        let message =
            "Automodel's own experts under sharding other than FSDP2 with weights that stay gathered";
        table.lack(Field::ZeroStage, "", Effect::Memory, message);
    }
}

/// Whether adapters are those that were recorded with layers sharded by DTensor: with a rank divisible by the number of
/// tensor ranks, without dropout, only on projections of decoder layers, in bf16.
fn adapted_by_dtensor(table: &Table) -> bool {
    const PROJECTIONS: &[&str] =
        &["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
    let known = table.words(Field::LoraTargetModules).iter().all(|name| PROJECTIONS.contains(name));
    let divided = table.number(Field::LoraRank).is_multiple_of(table.degree(Field::TensorModelParallelSize));
    let drops = table.real(Field::LoraDropout).is_some_and(|share| share > 0.0);
    known && divided && !drops && !table.on(Field::UseDora) && !table.has(Field::LoraKernels)
}

/// Plain PyTorch modules that are recomputed one by one: supported for attention, MLP and norms of dense layers that
/// train.
pub(super) fn one_by_one(table: &mut Table, software: Software) {
    if !software.semantics().eager_modules || !table.is(word::RecomputeGranularity::Selective) {
        return;
    }
    let modules = table.words(Field::RecomputeModules);
    let all =
        modules.len() == 3 && ["self_attn", "mlp", "layernorm"].iter().all(|name| modules.contains(name));
    let trains_all = table.is_unset_or(&[word::TrainType::Full]);
    let plain = table.word(Field::UnrecordedModules).is_empty()
        && !table.has(Field::VisionTower)
        && !table.has(Field::LinearMixer)
        && table.number(Field::NumExperts) == 0;
    let llama = table.words(Field::ModuleVariants).is_empty() && !table.on(Field::PostNorms);
    let known = match software {
        Software::HfTransformers | Software::Automodel => all && llama,
        // For OLMo-core's own blocks, which have a different norm placement, only the MLP was recorded, within compiled
        // layers.
        Software::OlmoCore => modules == ["mlp"] && table.on(Field::CompiledLayers),
        _ => false,
    };
    if !(trains_all && plain && known) || has_liger(table) {
        let message =
            "modules recomputed one by one, other than attention, MLP and norms of trained dense layers";
        table.lack(Field::RecomputeModules, "", Effect::Memory, message);
    }
}

/// XTuner without `--deepspeed` (`xtuner/tools/train.py`): mmengine's own wrapper of the optimizer, whose autocast and format of weights
/// its files state in other words.
pub(super) fn without_deepspeed(table: &mut Table, software: Software) {
    if software == Software::Xtuner && table.has(Field::ZeroStage) && table.number(Field::ZeroStage) == 0 {
        let what = "XTuner without DeepSpeed: mixed precision by mmengine's AmpOptimWrapper";
        table.lack(Field::ZeroStage, "0", Effect::Memory, what);
    }
}

/// Stops experts under Liger, which replaces those of most families: with one fused function (`liger_kernel/ops/fused_moe.py`,
/// 0.8), or before that with modules that use its gate. The function saves the outputs of gate_proj and up_proj for each
/// routed token, but none of the other tensors that transformers' experts save. A text does not state the release.
pub(super) fn liger_experts(table: &mut Table, software: Software) {
    if software.semantics().eager_modules && has_liger_gates(table) && table.number(Field::NumExperts) > 0 {
        let message =
            "Liger's experts in place of transformers', which save different tensors for the backward pass";
        let field = if table.on(Field::LigerKernel) { Field::LigerKernel } else { Field::LigerParts };
        table.lack(field, "", Effect::Memory, message);
    }
}

/// Whether Liger's kernels multiply gate and up in place of transformers' modules.
pub(super) fn has_liger_gates(table: &Table) -> bool {
    table.on(Field::LigerKernel) || table.words(Field::LigerParts).contains(&"gates")
}

/// Whether some of Liger's kernels replace those of transformers.
pub(super) fn has_liger(table: &Table) -> bool {
    table.on(Field::LigerKernel) || table.has(Field::LigerParts)
}

/// Rollouts by the model in training: supported for dense transformers layers with a gated MLP and rotary heads,
/// unsharded on each accelerator or gathered by ZeRO-3 (`tests/data/activations/generation_peak.tsv`).
pub(super) fn own_rollouts(table: &mut Table) {
    if !table.is(RolloutEngine::Transformers) {
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
    let widths = table.is_unset_or(&[
        word::BaseQuantization::None,
        word::BaseQuantization::Nf4,
        word::BaseQuantization::Fp4,
    ]);
    if !table.has(Field::HiddenSize) {
        return;
    }
    // `trl/trainer/grpo_config.py:__post_init__` rejects it; until 0.15 the batch counted prompts, each with this many
    // rollouts.
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
    } else if table.is(word::AttnImplementation::Eager) {
        "rollouts by the training model (no vLLM) with eager attention, whose scores grow with the prompts"
    } else if table.is_any(&[word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2]) {
        "rollouts by an FSDP-sharded training model (no vLLM)"
    } else {
        return;
    };
    table.lack(Field::RolloutEngine, "transformers", Effect::Memory, message);
}

/// Preferences whose log-probabilities are computed from last hidden states are unsloth's, which has no other way.
pub(super) fn scored_states(table: &mut Table, software: Software) {
    let of_states = table.is_any(&[
        word::PreferenceLogits::States,
        word::PreferenceLogits::AllStates,
        word::PreferenceLogits::LabelledStates,
        word::PreferenceLogits::StatesOrpo,
    ]);
    let compares = table.is(word::TrainingObjective::Dpo);
    if compares && of_states != (software == Software::Unsloth) {
        let value = table.word(Field::PreferenceLogits).to_owned();
        let message = "a preference loss that takes its logits in this way, in this software";
        table.lack(Field::PreferenceLogits, &value, Effect::Memory, message);
    }
}
