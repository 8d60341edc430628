//! Unsupported cases of plain PyTorch modules that are sharded over ranks, or that are recomputed one by one.

use super::precision::{lacks_bf16, overflows_fp16};
use super::table::Table;
use super::vision;
use crate::{Effect, Origin};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, LinearKind, RolloutEngine, Software, TowerGradients, word};

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

/// prime-rl reimplements the modules of Llama and Qwen3 as in transformers, and what backward holds of them if they are
/// compiled with their checkpoint was recorded. Its experts, states and other losses, and the models that it takes from
/// transformers itself, were not.
pub(super) fn compiled(table: &mut Table, software: Software) {
    // `unsloth/models/rl.py`: "Model is in float16 precision but you want to use bfloat16".
    let stated = |origin| !matches!(origin, Origin::Default | Origin::Derived);
    let bf16 = table.get(Field::Bf16).is_some_and(|setting| stated(setting.origin)) && table.on(Field::Bf16);
    if software == Software::Unsloth && bf16 && lacks_bf16(table) && !overflows_fp16(table) {
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
    // `torchtitan/models/llama4/infra/parallelize.py:apply_compile` compiles a layer with experts module by module, within its
    // checkpoint, which sees what these return or nothing of them, by release (`inductor_compiled_code`).
    let parts = table.on(Field::CompiledLayers) && table.number(Field::NumExperts) > 0;
    if software == Software::Torchtitan && parts && table.is(word::RecomputeGranularity::Selective) {
        let message =
            "layers with experts compiled module by module, of whose operations every second is recomputed";
        table.lack(Field::RecomputeGranularity, "selective", Effect::Memory, message);
    }
    if software == Software::Torchtitan
        && table.on(Field::Fp8ParamGather)
        && table.number(Field::NumExperts) > 0
    {
        let message = "weights gathered in fp8 beside experts, of which torchao converts none";
        table.lack(Field::Fp8ParamGather, "true", Effect::Communication, message);
    }
    let tiled = table.is(word::LossKind::Tiled);
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
    let frozen = table.is_any(&[word::TrainType::Lora, word::TrainType::QLora, word::TrainType::Freeze]);
    let recomputed = table.on(Field::GradientCheckpointing) || table.is(word::RecomputeGranularity::Full);
    if checkpointed && (frozen || !recomputed) {
        let message = "compiled layers without full checkpointing or with frozen weights";
        table.lack(Field::CompiledCheckpoints, "", Effect::Memory, message);
    }
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

/// Layers compiled by unsloth were recorded with adapters without dropout, in bf16 and, except for Gemma's, in fp16,
/// which it uses on Turing. Gemma 3 runs in fp32 between its modules there (`precision.rs`).
fn by_unsloth(table: &mut Table) {
    let in_fp32 = overflows_fp16(table);
    let gemma = in_fp32 || table.is(word::AttnImplementation::FlexAttention);
    if lacks_bf16(table) && !catalog::is_turing(table.word(Field::Accelerator)) {
        let message = "layers that unsloth compiles, on an accelerator without bf16";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
    if in_fp32 && (vision::adapted(table) || vision::gradients(table) != TowerGradients::None) {
        let message = "a vision tower that saves tensors for backward, with the decoder's stream in fp32";
        table.lack(Field::VisionTower, "", Effect::Memory, message);
    }
    if table.is(word::TrainType::Full) && (in_fp32 || table.on(Field::VisionTower)) {
        let message = "full fine-tuning of a vision tower, or in fp32 between modules, under unsloth";
        table.lack(Field::TrainType, "full", Effect::Memory, message);
    }
    // For a model that is only known here; one known to a reader is reported there by its name.
    let of_others = [
        Field::MultiLatentAttention,
        Field::AttentionOutputGate,
        Field::FusedQkv,
        Field::FusedGateUp,
        Field::NormsOverHeads,
        Field::AttentionSoftcap,
    ];
    let layers = of_others.iter().any(|field| table.on(*field))
            || table.number(Field::NumExperts) > 0
            || table.has(Field::LinearMixer)
                && !table.is(LinearKind::ShortConvolution)
            || !table.word(Field::UnrecordedModules).is_empty()
            || (table.on(Field::PostNorms) || table.has(Field::AttentionWindow)) && !gemma
            || table.has(Field::Normalization) && !table.is(word::Normalization::RmsNorm)
            || table.has(Field::HiddenSize) && !table.on(Field::Swiglu) && !gemma
        // Of models with a tower only those with three-dimensional positions were recorded, which keep their masks.
        || table.on(Field::VisionTower) && !table.on(Field::PaddingMask) && !gemma;
    if layers {
        let message = "modules compiled by unsloth, which save less than transformers' own";
        table.lack(Field::CompiledLayers, "", Effect::Memory, message);
    }
    // A mask of each sample's own keys, whose size depends on the samples.
    if table.on(Field::Packing) && !gemma {
        let message = "packed samples in layers that unsloth compiles";
        table.lack(Field::Packing, "true", Effect::Memory, message);
    }
    if table.real(Field::LoraDropout).is_some_and(|share| share > 0.0) {
        let message = "LoRA dropout in layers that unsloth compiles";
        table.lack(Field::LoraDropout, "", Effect::Memory, message);
    }
}
