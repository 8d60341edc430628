//! The rows: each software expressed as its differences from the most similar one.

use super::offers::{HostOptimizer, Offers, RecomputedModules};
use super::semantics::{
    AttentionBuild, BatchMask, EndsGathered, GatedActivation, GradientBuffers, HostIssue, MemoryBuffer,
    Modules, NormModule, Rotation, Semantics,
};
use crate::adapters::AdapterLibrary;
use crate::kernels::LossKind;
use crate::layout::PipelineSchedule;
use crate::moe::Dispatcher;
use crate::optimizer::DpSharding;
use crate::precision::Fp8Recipe;

/// ZeRO stages 0 to 3, the usual one first.
const ALL_SHARDINGS: &[DpSharding] =
    &[DpSharding::OptimizerStates, DpSharding::Replicated, DpSharding::Gradients, DpSharding::Parameters];

/// Stages 0 and 1.
const STATES_OR_NONE: &[DpSharding] = &[DpSharding::OptimizerStates, DpSharding::Replicated];

/// Megatron core's offers. Its FSDP is proposed only where it has been used: without a pipeline.
const CORE_OFFERS: Offers = Offers {
    shardings: ALL_SHARDINGS,
    shardings_of_pipelines: STATES_OR_NONE,
    shares_states_in_bf16: false,
    overlaps_reductions: true,
    uneven_stages: true,
    orders_ranks: true,
    schedules: &[],
    has_zero_bubble_fork: true,
    recomputed_modules: RecomputedModules::Named,
    recomputes_blocks: true,
    recomputes_layers: true,
    chooses_attention: true,
    fp8_recipes: &[
        Fp8Recipe::Delayed,
        Fp8Recipe::Tensorwise,
        Fp8Recipe::Blockwise,
        Fp8Recipe::Mxfp8,
        Fp8Recipe::Nvfp4,
    ],
    dispatchers: &[Dispatcher::AllGather, Dispatcher::AllToAll, Dispatcher::Flex],
    host_optimizer: HostOptimizer::Fraction,
    groups_replicas: true,
    offloads_modules: true,
};

// Megatron's own layers have neither Transformer Engine's attention, nor its FP8, nor its offloading.
const CORE_LOCAL_OFFERS: Offers = Offers {
    shardings: STATES_OR_NONE,
    chooses_attention: false,
    fp8_recipes: &[],
    offloads_modules: false,
    ..CORE_OFFERS
};

/// Offers of software for which nothing more is known.
pub(super) const OTHER_OFFERS: Offers = Offers {
    shardings: &[],
    shardings_of_pipelines: &[],
    overlaps_reductions: false,
    uneven_stages: false,
    orders_ranks: false,
    has_zero_bubble_fork: false,
    recomputed_modules: RecomputedModules::Absent,
    recomputes_blocks: false,
    chooses_attention: false,
    fp8_recipes: &[],
    dispatchers: &[],
    host_optimizer: HostOptimizer::Absent,
    groups_replicas: false,
    offloads_modules: false,
    ..CORE_OFFERS
};

const LEGACY_OFFERS: Offers = Offers {
    shardings: STATES_OR_NONE,
    shardings_of_pipelines: STATES_OR_NONE,
    has_zero_bubble_fork: true,
    recomputed_modules: RecomputedModules::Scores,
    recomputes_blocks: true,
    ..OTHER_OFFERS
};

/// DeepSpeed's pipeline engine supports ZeRO stages up to 1 (`runtime/pipe/engine.py`).
const DEEPSPEED_OFFERS: Offers = Offers {
    shardings: ALL_SHARDINGS,
    shardings_of_pipelines: STATES_OR_NONE,
    shares_states_in_bf16: true,
    host_optimizer: HostOptimizer::All,
    ..OTHER_OFFERS
};

/// torchtitan's pipelines are PyTorch's, by name (`pipeline_parallel_schedule`).
const TORCHTITAN_OFFERS: Offers = Offers {
    schedules: &[
        PipelineSchedule::OneForwardOneBackward,
        PipelineSchedule::GPipe,
        PipelineSchedule::ZeroBubbleV,
        PipelineSchedule::DualPipeV,
    ],
    groups_replicas: true,
    ..OTHER_OFFERS
};

/// Megatron core with Transformer Engine, on which the other rows are based.
pub(super) const CORE_TE: Semantics = Semantics {
    eager_modules: false,
    steps_parameters: false,
    // `MoELayer.forward` raises in training, in core 0.7 to 0.17.
    experts_need_sequence: true,
    cuts_models: true,
    makes_gradients_anew: false,
    compiled_step: false,
    logits_gradient_waits: false,
    gradients_as_computed: false,
    gated_activation: GatedActivation::KernelOrOffset,
    norm_in_projection: true,
    stand_in_each_time: false,
    copies_attention_inputs: true,
    keeps_unquantized_inputs: false,
    queries_hold_projection: false,
    positions_before_cut: false,
    batch_mask: BatchMask::Each,
    accumulates_output_layer: false,
    sums_before_reducing: false,
    loss: None,
    reduces_each_projection: false,
    gathers_logits: false,
    drops_cast_logits: false,
    gathers_pipeline_outputs: false,
    pipelines_hold_reductions: false,
    keeps_every_second_product: false,
    runs_as_written: false,
    checkpoints_between: false,
    issue: HostIssue::MegatronCore,
    attention_build: AttentionBuild::Native,
    pytorch_linears: false,
    transformer_engine: true,
    deepspeed_engine: false,
    memory_buffer: MemoryBuffer::OutputLayer,
    gradient_buffers: GradientBuffers::MegatronCore,
    casts_reduced_gradients: false,
    fsdp_fp32_shards: false,
    fsdp_wraps_ends: false,
    ends_gathered: EndsGathered::Nothing,
    scatters_between_stages: false,
    all_warmup_when_few: false,
    modules: Modules { hands_on_fp32: true, ..TRANSFORMERS_MODULES },
    offers: CORE_OFFERS,
};

pub(super) const CORE_LOCAL: Semantics = Semantics {
    norm_in_projection: false,
    stand_in_each_time: true,
    copies_attention_inputs: false,
    transformer_engine: false,
    memory_buffer: MemoryBuffer::AllLayers,
    offers: CORE_LOCAL_OFFERS,
    ..CORE_TE
};

/// Layers that are not Megatron core's.
pub(super) const OTHER: Semantics = Semantics {
    experts_need_sequence: false,
    gated_activation: GatedActivation::Separate,
    copies_attention_inputs: false,
    batch_mask: BatchMask::Absent,
    transformer_engine: false,
    memory_buffer: MemoryBuffer::Absent,
    gradient_buffers: GradientBuffers::Plain,
    offers: OTHER_OFFERS,
    ..CORE_TE
};

pub(super) const LEGACY: Semantics = Semantics {
    positions_before_cut: true,
    batch_mask: BatchMask::One,
    accumulates_output_layer: true,
    loss: Some(LossKind::Legacy),
    issue: HostIssue::MegatronLegacy,
    memory_buffer: MemoryBuffer::AllLayers,
    gradient_buffers: GradientBuffers::MegatronLegacy,
    scatters_between_stages: true,
    all_warmup_when_few: true,
    offers: LEGACY_OFFERS,
    ..OTHER
};

/// GPT-NeoX, whose loss follows its options and whose GPT-J-style layers reduce once (`megatron/model/transformer.py`). The
/// tensor its scores are added to is allocated each time (`ParallelSelfAttention.attention`) and freed once they are computed.
pub(super) const NEOX: Semantics = Semantics {
    sums_before_reducing: true,
    issue: HostIssue::MegatronLegacy,
    deepspeed_engine: true,
    offers: DEEPSPEED_OFFERS,
    ..OTHER
};

pub(super) const MEGATRON_DEEPSPEED: Semantics = Semantics {
    loss: Some(LossKind::Legacy),
    sums_before_reducing: false,
    memory_buffer: MemoryBuffer::AllLayers,
    ..NEOX
};

/// Software that runs PyTorch's own layers in its own training loop.
pub(super) const PYTORCH: Semantics = Semantics { issue: HostIssue::Eager, pytorch_linears: true, ..OTHER };

/// FP8 is torchao's, whose products save the 16-bit operands for autograd (`float8/float8_linear.py`,
/// `prototype/mx_formats/mx_linear.py`: `ctx.save_for_backward(input_hp, weight_hp)`).
pub(super) const TORCH_FSDP: Semantics = Semantics {
    keeps_unquantized_inputs: true,
    makes_gradients_anew: true,
    loss: Some(LossKind::Torch),
    attention_build: AttentionBuild::Triton,
    fsdp_fp32_shards: true,
    fsdp_wraps_ends: true,
    // FSDP1 (`torch/distributed/fsdp/_runtime_utils.py:_post_forward_reshard`).
    ends_gathered: EndsGathered::Root,
    ..PYTORCH
};

/// Norm and output layer are not freed behind forward since July 2025 (`distributed/fsdp.py:apply_fsdp_to_decoder`).
pub(super) const TORCHTITAN: Semantics = Semantics {
    // `torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:foreach_reduce`.
    casts_reduced_gradients: true,
    ends_gathered: EndsGathered::AfterLayers,
    gathers_pipeline_outputs: true,
    pipelines_hold_reductions: true,
    keeps_every_second_product: true,
    runs_as_written: true,
    issue: HostIssue::Compiled,
    attention_build: AttentionBuild::Pytorch,
    offers: TORCHTITAN_OFFERS,
    ..TORCH_FSDP
};

/// nanotron gathers into a buffer of its own (`column_linear`), and its loss shifts a copy of fp32 logits (`_ShardedCrossEntropy`, both of
/// `parallel/tensor_parallel/functional.py`). Since January 2024 its Llama rotates queries in place, joins keys with values
/// for flash-attn (`models/llama.py:CausalSelfAttention`), and returns only fp32 logits (`forward_with_hidden_states`).
pub(super) const NANOTRON: Semantics = Semantics {
    memory_buffer: MemoryBuffer::AllLayers,
    loss: Some(LossKind::Legacy),
    queries_hold_projection: true,
    drops_cast_logits: true,
    ..PYTORCH
};

/// Which of its ends FSDP wraps depends on the engine (Trainer's FSDP, DeepSpeed) and is taken from the recipe. Its attention is
/// `sdpa` since release 4.36, or flash-attn 2: the same kernel (`modeling_utils.py:_check_and_adjust_attn_implementation`).
pub(super) const HF_TRANSFORMERS: Semantics = Semantics {
    eager_modules: true,
    issue: HostIssue::Modules,
    attention_build: AttentionBuild::Pytorch,
    steps_parameters: true,
    cuts_models: false,
    fsdp_wraps_ends: false,
    // Of FSDP2: the engine says whether it is FSDP1.
    ends_gathered: EndsGathered::Nothing,
    // TRL's `models/activation_offloading.py:OffloadActivations`.
    modules: Modules { streams_inputs: true, drops_gradients: true, ..TORCH_FSDP.modules },
    ..TORCH_FSDP
};

pub(super) const TRANSFORMERS_MODULES: Modules = Modules {
    name: "transformers",
    norm: NormModule::CastBefore,
    rotation: Rotation::Shared,
    repeats_groups: false,
    views_one_group: false,
    repeats_for_sdpa: false,
    adapters: AdapterLibrary::Peft,
    dispatches_experts: false,
    joins_projections: false,
    quantizes: true,
    masks_every_window: false,
    quantizes_output: false,
    unpacks_in_fp16: false,
    fuses_adapters: false,
    compiles_capped_scores: false,
    originals_away: false,
    loss_chunks: 1,
    logits_chunk: None,
    fp32_layer_norm: false,
    rotates_in_place: false,
    breaks_at_attention: false,
    compiles_whole: false,
    shifts_logits: false,
    labels_come_moved: false,
    hands_on_fp32: false,
    holds_last_reference: false,
    casts_weights_once: false,
    drops_gradients: false,
    caps_last_norm: false,
    streams_inputs: false,
};

/// torchtune (`modules/attention.py:MultiHeadAttention`, `modules/position_embeddings.py`, `modules/loss`); its
/// recipes' tensor parallelism is not covered.
pub(super) const TORCHTUNE: Semantics = Semantics {
    modules: Modules {
        name: "torchtune",
        // `models/gemma2/_component_builders.py:Gemma2FinalNorm`.
        caps_last_norm: true,
        // `training/_activation_offloading.py:OffloadActivations`.
        streams_inputs: true,
        rotation: Rotation::Buffers,
        repeats_groups: true,
        views_one_group: true,
        adapters: AdapterLibrary::Torchtune,
        loss_chunks: 8,
        casts_weights_once: true,
        drops_gradients: true,
        ..TRANSFORMERS_MODULES
    },
    loss: Some(LossKind::ChunkedLinear),
    fsdp_fp32_shards: false,
    // `training/_distributed.py:shard_model`, since June 2025.
    ends_gathered: EndsGathered::Root,
    ..HF_TRANSFORMERS
};

/// Its DPO recipes keep the last reference's logits alive as `_` (`recipes/lora_dpo_single_device.py`).
/// `modules/rms_norm.py:RMSNorm` of 0.6 passes its fp32 input to `torch.nn.functional.rms_norm`, which casts the
/// product with the weight.
pub(super) const TORCHTUNE_06: Semantics = Semantics {
    modules: Modules { norm: NormModule::CastAfter, holds_last_reference: true, ..TORCHTUNE.modules },
    loss: Some(LossKind::ChunkedLogits),
    ends_gathered: EndsGathered::Nothing,
    ..TORCHTUNE
};

/// Most bytes that a chunk of logits and the tensors derived from it take
/// (`unsloth_zoo/fused_losses/cross_entropy_loss.py:_CE_TARGET_GB_CAP`).
const UNSLOTH_LOGITS: u64 = 4 << 30;

/// unsloth (`kernels/fast_lora.py`, `kernels/rms_layernorm.py`, `kernels/rope_embedding.py`,
/// `utils/attention_dispatch.py`): keys and values are repeated for xFormers, which it installs by default, not for
/// flash-attn. Its rotary tables are buffers on each device.
pub(super) const UNSLOTH: Semantics = Semantics {
    modules: Modules {
        name: "unsloth",
        norm: NormModule::Kernel,
        rotation: Rotation::Whole,
        repeats_groups: true,
        views_one_group: true,
        fuses_adapters: true,
        compiles_capped_scores: true,
        originals_away: true,
        logits_chunk: Some(UNSLOTH_LOGITS),
        drops_gradients: true,
        ..TRANSFORMERS_MODULES
    },
    loss: Some(LossKind::FusedLinear),
    fsdp_fp32_shards: false,
    ..HF_TRANSFORMERS
};

/// ScaleTorch (`models/model_qwen3.py`, `parallel/tensor_parallel`, `trainer/train_step.py`): modules like transformers', with
/// keys and values repeated per query head, bf16 weights that AdamW steps directly, and its own tensor and pipeline parallelism.
pub(super) const SCALETORCH: Semantics = Semantics {
    cuts_models: true,
    // `tensor_parallel.py:apply_tensor_parallel`: `LinearWithAsyncAllReduce` for each, `final_proj` with `gather_output`.
    reduces_each_projection: true,
    gathers_logits: true,
    modules: Modules {
        name: "ScaleTorch",
        repeats_groups: true,
        drops_gradients: true,
        ..TRANSFORMERS_MODULES
    },
    fsdp_fp32_shards: false,
    offers: OTHER_OFFERS,
    ..HF_TRANSFORMERS
};
