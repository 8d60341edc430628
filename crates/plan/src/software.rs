//! What differs from software to software, as data: operators and estimators ask for these facts and never which
//! software it is. A new software is a row here.

use super::adapters::AdapterLibrary;
use super::kernels::LossKind;

/// Which software runs the plan; it decides what is kept, fused and overlapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// `megatron/model` of 2023 and before.
    MegatronLegacy,
    /// Megatron core with its own layers (`--transformer-impl local`).
    MegatronCoreLocal,
    /// Megatron core with Transformer Engine, the default since core 0.6.
    MegatronCoreTe,
    /// Megatron-DeepSpeed.
    MegatronDeepspeed,
    /// torchtitan.
    Torchtitan,
    /// nanotron.
    Nanotron,
    /// GPT-NeoX.
    GptNeox,
    /// Plain PyTorch FSDP trainers (llm-foundry and the like).
    TorchFsdp,
    /// Hugging Face transformers and what trains with its modules: its Trainer, TRL, LLaMA-Factory, axolotl.
    HfTransformers,
    /// torchtune after its release 0.6.1, with its own modules.
    Torchtune,
    /// torchtune 0.5 and 0.6: another norm, and losses over chunks of logits.
    Torchtune06,
    /// litgpt's fine-tuning, with its own modules.
    Litgpt,
    /// unsloth's `FastLanguageModel`: transformers' models with its own kernels and backward passes.
    Unsloth,
}

impl Software {
    /// Every software with its name in the report.
    pub const ALL: [Self; 13] = [
        Self::MegatronLegacy,
        Self::MegatronCoreLocal,
        Self::MegatronCoreTe,
        Self::MegatronDeepspeed,
        Self::Torchtitan,
        Self::Nanotron,
        Self::GptNeox,
        Self::TorchFsdp,
        Self::HfTransformers,
        Self::Torchtune,
        Self::Torchtune06,
        Self::Litgpt,
        Self::Unsloth,
    ];

    /// The name used in settings and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MegatronLegacy => "megatron_legacy",
            Self::MegatronCoreLocal => "megatron_core_local",
            Self::MegatronCoreTe => "megatron_core_te",
            Self::MegatronDeepspeed => "megatron_deepspeed",
            Self::Torchtitan => "torchtitan",
            Self::Nanotron => "nanotron",
            Self::GptNeox => "gpt_neox",
            Self::TorchFsdp => "torch_fsdp",
            Self::HfTransformers => "hf_transformers",
            Self::Torchtune => "torchtune",
            Self::Torchtune06 => "torchtune_0_6",
            Self::Litgpt => "litgpt",
            Self::Unsloth => "unsloth",
        }
    }
}

/// How a software's layers keep, fuse and gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Whether layers are modules of plain PyTorch, each operation of which keeps what it needs by itself.
    pub eager_modules: bool,
    /// Whether the optimizer steps the model's own parameters, in their own type, unless an engine says otherwise.
    pub steps_parameters: bool,
    /// Whether the software cuts a model over ranks other than data-parallel ones.
    pub cuts_models: bool,
    /// Whether gradients are gone between steps, so that the first backward of a step makes each anew when it reaches
    /// its parameter (`zero_grad(set_to_none=True)`), unless an engine holds them in buffers.
    pub makes_gradients_anew: bool,
    /// What a column-parallel layer keeps of its input under sequence parallelism.
    pub column_input: ColumnInput,
    /// What a gated activation keeps beside its input and its output.
    pub gated_activation: GatedActivation,
    /// Whether a norm's weight is created with the projection behind it (Transformer Engine's `LayerNormLinear`).
    pub norm_in_projection: bool,
    /// Whether a linear layer makes a weight gradient of its own even where gradients are accumulated in the product:
    /// autograd is handed a stand-in of the same size.
    pub stand_in_each_time: bool,
    /// Whether cuDNN's attention gets copies of queries, keys and values, or views of the projection's output.
    pub copies_attention_inputs: bool,
    /// Whether positions are added for the whole sequence before it is cut over the tensor ranks.
    pub positions_before_cut: bool,
    /// The attention mask that is alive while the loss runs.
    pub batch_mask: BatchMask,
    /// Whether the output layer accumulates its weight gradient in the product, so that none is made.
    pub accumulates_output_layer: bool,
    /// The loss that runs whatever Megatron's options say; none where these decide.
    pub loss: Option<LossKind>,
    /// Whether a pipeline gathers the last stage's outputs and has buffers of its own for every micro-batch
    /// (`torch.distributed.pipelining`).
    pub gathers_pipeline_outputs: bool,
    /// Whether selective checkpointing keeps every second product of a layer, whatever modules are named.
    pub keeps_every_second_product: bool,
    /// How the host issues its kernels, which sets the time of a step too small for the device.
    pub issue: HostIssue,
    /// Which build of fused attention its models call.
    pub attention_build: AttentionBuild,
    /// Whether linear layers are `torch.nn.Linear`, with neither Megatron's fusions nor Transformer Engine's kernels.
    pub pytorch_linears: bool,
    /// Whether layers are Transformer Engine's modules, which have a workspace and stand-ins of weight gradients.
    pub transformer_engine: bool,
    /// Whether DeepSpeed's engine holds gradients and optimizer states, in flat buffers of its own.
    pub deepspeed_engine: bool,
    /// Whose layers share Megatron's growing global memory buffer.
    pub memory_buffer: MemoryBuffer,
    /// How parameters are laid out in contiguous gradient buffers.
    pub gradient_buffers: GradientBuffers,
    /// Whether FSDP holds weights as fp32 shards and casts them when they are gathered.
    pub fsdp_fp32_shards: bool,
    /// Whether embedding and output layer are an FSDP unit of their own, whatever engine is named.
    pub fsdp_wraps_ends: bool,
    /// Whether a pipeline stage sends each tensor rank's part of an activation, which the next stage gathers.
    pub scatters_between_stages: bool,
    /// How its modules are written, where they are of plain PyTorch.
    pub modules: Modules,
}

/// How the host issues kernels: what Python runs for each, and whether a compiler has joined them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostIssue {
    /// Megatron core's loop.
    MegatronCore,
    /// `megatron/model` of 2023 and what was forked from it.
    MegatronLegacy,
    /// Modules of PyTorch, one operation after the other.
    Eager,
    /// Layers under `torch.compile`.
    Compiled,
}

/// A build of fused attention, each of which reaches another share of the device's peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionBuild {
    /// flash-attn or cuDNN, called by the software itself.
    Native,
    /// FlashAttention-1 in Triton, as trainers of 2023 had it.
    Triton,
    /// FlashAttention-2 as `torch.nn.functional.scaled_dot_product_attention` brings it.
    Pytorch,
}

/// Layers that use Megatron's growing buffer (`megatron/core/utils.py:GlobalMemoryBuffer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBuffer {
    /// None: the software is not Megatron.
    Absent,
    /// The output layer alone; the others are Transformer Engine's.
    OutputLayer,
    /// All.
    AllLayers,
}

/// How gradients of a rank lie in one piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientBuffers {
    /// Aligned and padded for the distributed optimizer (`megatron/core/distributed/param_and_grad_buffer.py`).
    MegatronCore,
    /// One after the other, padded at the end alone (`megatron/model/distributed.py`).
    MegatronLegacy,
    /// Not Megatron's: without padding.
    Plain,
}

/// How a library writes its modules of plain PyTorch: what follows for the tensors that each operation keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modules {
    /// The library's name.
    pub name: &'static str,
    /// What a norm multiplies by its weight.
    pub norm: NormModule,
    /// Where the cosines and sines of the rotation are.
    pub rotation: Rotation,
    /// Whether keys and values are repeated for every query head before the attention's kernel.
    pub repeats_groups: bool,
    /// Whose adapters stand beside its linear layers.
    pub adapters: AdapterLibrary,
    /// Whether queries, keys and values are one projection, whose adapters share an A.
    pub joins_projections: bool,
    /// Whether it is known what its modules keep over quantised weights.
    pub quantizes: bool,
    /// Whether projections with adapters, and an MLP of them, are one autograd function each, with a backward pass written by
    /// hand: it keeps the input, and of an MLP what goes into the activation.
    pub fuses_adapters: bool,
    /// Parts in which a chunked loss takes a micro-batch.
    pub loss_chunks: u64,
    /// Most bytes of fp32 logits in one chunk of a fused output layer and loss; none where the hidden size decides (Liger).
    pub logits_chunk: Option<u64>,
    /// Whether `bf16` and `fp16` are formats of the weights; else those of `torch.autocast` over them.
    pub casts_weights_once: bool,
}

/// What an RMSNorm of plain operations multiplies by its weight, and so keeps where the weight trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormModule {
    /// The normalised input in the type of the weights.
    CastBefore,
    /// The normalised input in fp32.
    CastAfter,
    /// The same, with a copy of the weight in fp32.
    Widened,
    /// One kernel, which keeps its input in its own type and computes the rest again.
    Kernel,
}

/// Where the cosines and sines of the rotation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Made in each pass, one table for all layers.
    Shared,
    /// In buffers of the model. Qwen's models cast them to the type of the heads, for queries and for keys apart.
    Buffers,
    /// In buffers of the model, and used as they are.
    Whole,
}

/// What a column-parallel layer keeps of its input where sequence parallelism has cut it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnInput {
    /// The rank's own part; backward gathers it once more.
    Sharded,
    /// The tokens of all tensor ranks, as the product read them.
    Gathered,
}

/// How a gated activation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatedActivation {
    /// One kernel, which can be turned off: then a function and a product with an offset, each with its own copy.
    KernelOrOffset,
    /// A function and a product.
    Separate,
}

/// The attention mask that comes with a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMask {
    /// None.
    Absent,
    /// One for all sequences.
    One,
    /// One for each, where the data loader makes it.
    Each,
}

/// Megatron core with Transformer Engine, from which the others differ.
const CORE_TE: Semantics = Semantics {
    eager_modules: false,
    steps_parameters: false,
    cuts_models: true,
    makes_gradients_anew: false,
    column_input: ColumnInput::Sharded,
    gated_activation: GatedActivation::KernelOrOffset,
    norm_in_projection: true,
    stand_in_each_time: false,
    copies_attention_inputs: true,
    positions_before_cut: false,
    batch_mask: BatchMask::Each,
    accumulates_output_layer: false,
    loss: None,
    gathers_pipeline_outputs: false,
    keeps_every_second_product: false,
    issue: HostIssue::MegatronCore,
    attention_build: AttentionBuild::Native,
    pytorch_linears: false,
    transformer_engine: true,
    deepspeed_engine: false,
    memory_buffer: MemoryBuffer::OutputLayer,
    gradient_buffers: GradientBuffers::MegatronCore,
    fsdp_fp32_shards: false,
    fsdp_wraps_ends: false,
    scatters_between_stages: false,
    modules: TRANSFORMERS_MODULES,
};
const CORE_LOCAL: Semantics = Semantics {
    norm_in_projection: false,
    stand_in_each_time: true,
    copies_attention_inputs: false,
    transformer_engine: false,
    memory_buffer: MemoryBuffer::AllLayers,
    ..CORE_TE
};
/// Layers that are not Megatron core's.
const OTHER: Semantics = Semantics {
    gated_activation: GatedActivation::Separate,
    copies_attention_inputs: false,
    batch_mask: BatchMask::Absent,
    transformer_engine: false,
    memory_buffer: MemoryBuffer::Absent,
    gradient_buffers: GradientBuffers::Plain,
    ..CORE_TE
};
const LEGACY: Semantics = Semantics {
    positions_before_cut: true,
    batch_mask: BatchMask::One,
    accumulates_output_layer: true,
    loss: Some(LossKind::Legacy),
    issue: HostIssue::MegatronLegacy,
    memory_buffer: MemoryBuffer::AllLayers,
    gradient_buffers: GradientBuffers::MegatronLegacy,
    scatters_between_stages: true,
    ..OTHER
};
/// GPT-NeoX, whose loss follows its options.
const NEOX: Semantics = Semantics {
    issue: HostIssue::MegatronLegacy,
    deepspeed_engine: true,
    memory_buffer: MemoryBuffer::AllLayers,
    ..OTHER
};
const MEGATRON_DEEPSPEED: Semantics = Semantics { loss: Some(LossKind::Legacy), ..NEOX };
/// Software with PyTorch's own layers under its own loop.
const PYTORCH: Semantics = Semantics { issue: HostIssue::Eager, pytorch_linears: true, ..OTHER };
const TORCH_FSDP: Semantics = Semantics {
    makes_gradients_anew: true,
    loss: Some(LossKind::Torch),
    attention_build: AttentionBuild::Triton,
    fsdp_fp32_shards: true,
    fsdp_wraps_ends: true,
    ..PYTORCH
};
const TORCHTITAN: Semantics = Semantics {
    gathers_pipeline_outputs: true,
    keeps_every_second_product: true,
    issue: HostIssue::Compiled,
    attention_build: AttentionBuild::Pytorch,
    ..TORCH_FSDP
};
/// nanotron gathers in an operation of its own, and its loss shifts a copy of fp32 logits
/// (`parallel/tensor_parallel/functional.py:column_linear`, `_ShardedCrossEntropy`).
const NANOTRON: Semantics =
    Semantics { column_input: ColumnInput::Gathered, loss: Some(LossKind::Legacy), ..PYTORCH };
/// Which of its ends FSDP wraps depends on the engine (Trainer's FSDP, DeepSpeed) and is asked of the recipe.
const HF_TRANSFORMERS: Semantics = Semantics {
    eager_modules: true,
    steps_parameters: true,
    cuts_models: false,
    fsdp_wraps_ends: false,
    ..TORCH_FSDP
};
const TRANSFORMERS_MODULES: Modules = Modules {
    name: "transformers",
    norm: NormModule::CastBefore,
    rotation: Rotation::Shared,
    repeats_groups: false,
    adapters: AdapterLibrary::Peft,
    joins_projections: false,
    quantizes: true,
    fuses_adapters: false,
    loss_chunks: 1,
    logits_chunk: None,
    casts_weights_once: false,
};
/// torchtune (`modules/attention.py:MultiHeadAttention`, `modules/position_embeddings.py`, `modules/loss`); tensor parallelism
/// of its recipes is left out.
const TORCHTUNE: Semantics = Semantics {
    modules: Modules {
        name: "torchtune",
        rotation: Rotation::Buffers,
        repeats_groups: true,
        adapters: AdapterLibrary::Torchtune,
        loss_chunks: 8,
        casts_weights_once: true,
        ..TRANSFORMERS_MODULES
    },
    loss: Some(LossKind::ChunkedLinear),
    attention_build: AttentionBuild::Pytorch,
    fsdp_fp32_shards: false,
    ..HF_TRANSFORMERS
};
/// `modules/rms_norm.py:RMSNorm` of 0.6 hands its fp32 input to `torch.nn.functional.rms_norm`, which casts the product with
/// the weight.
const TORCHTUNE_06: Semantics = Semantics {
    modules: Modules { norm: NormModule::CastAfter, ..TORCHTUNE.modules },
    loss: Some(LossKind::ChunkedLogits),
    ..TORCHTUNE
};
/// litgpt (`model.py`, `finetune/full.py`, `finetune/lora.py`, `utils.py:chunked_cross_entropy`). Over quantised weights published
/// peaks are a quarter above what these formulas give, so that such runs are not modelled.
const LITGPT: Semantics = Semantics {
    modules: Modules {
        name: "litgpt",
        norm: NormModule::Widened,
        rotation: Rotation::Whole,
        repeats_groups: true,
        adapters: AdapterLibrary::Litgpt,
        joins_projections: true,
        quantizes: false,
        casts_weights_once: true,
        ..TRANSFORMERS_MODULES
    },
    loss: Some(LossKind::ChunkedRows),
    attention_build: AttentionBuild::Pytorch,
    fsdp_fp32_shards: false,
    ..HF_TRANSFORMERS
};
/// Most that unsloth lets one chunk of fp32 logits take: 4 GiB, less where less than 8 GiB are free when the first loss runs
/// (`unsloth_zoo/fused_losses/cross_entropy_loss.py:_get_chunk_multiplier`).
const UNSLOTH_LOGITS: u64 = 4 << 30;
/// unsloth (`kernels/fast_lora.py`, `kernels/rms_layernorm.py`, `kernels/rope_embedding.py`, `utils/attention_dispatch.py`): keys
/// and values are repeated for xFormers, which its installation brings; flash-attn, which it prefers where it is there, needs
/// none of that. Its rotation is in buffers of each device.
const UNSLOTH: Semantics = Semantics {
    modules: Modules {
        name: "unsloth",
        norm: NormModule::Kernel,
        rotation: Rotation::Whole,
        repeats_groups: true,
        fuses_adapters: true,
        logits_chunk: Some(UNSLOTH_LOGITS),
        ..TRANSFORMERS_MODULES
    },
    loss: Some(LossKind::FusedLinear),
    fsdp_fp32_shards: false,
    ..HF_TRANSFORMERS
};

impl Software {
    /// What is known of how it keeps, fuses and gathers.
    #[must_use]
    pub const fn semantics(self) -> &'static Semantics {
        match self {
            Self::MegatronLegacy => &LEGACY,
            Self::MegatronCoreLocal => &CORE_LOCAL,
            Self::MegatronCoreTe => &CORE_TE,
            Self::Torchtitan => &TORCHTITAN,
            Self::Nanotron => &NANOTRON,
            Self::HfTransformers => &HF_TRANSFORMERS,
            Self::Torchtune => &TORCHTUNE,
            Self::Torchtune06 => &TORCHTUNE_06,
            Self::Litgpt => &LITGPT,
            Self::Unsloth => &UNSLOTH,
            Self::MegatronDeepspeed => &MEGATRON_DEEPSPEED,
            Self::TorchFsdp => &TORCH_FSDP,
            Self::GptNeox => &NEOX,
        }
    }
}
