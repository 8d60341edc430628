//! Facts about a software: what it keeps, fuses, gathers and issues.

use super::offers::Offers;
use crate::adapters::AdapterLibrary;
use crate::kernels::LossKind;

/// How a software's layers keep, fuse and gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Whether layers are modules of plain PyTorch, each operation of which keeps what it needs by itself.
    pub eager_modules: bool,
    /// Whether the optimizer steps the model's own parameters, in their own type, unless an engine says otherwise.
    pub steps_parameters: bool,
    /// Whether layers of experts refuse to train under TP without sequence parallelism, without expert parallelism too.
    pub experts_need_sequence: bool,
    /// Whether the software cuts a model over ranks other than data-parallel ones.
    pub cuts_models: bool,
    /// Whether gradients are gone between steps, so that the first backward of a step makes each anew when it reaches
    /// its parameter (`zero_grad(set_to_none=True)`), unless an engine holds them in buffers.
    pub makes_gradients_anew: bool,
    /// Whether one compiler lays out a whole step and decides what stands in memory when (XLA), so that what is held is known at
    /// the fullest moments of compiled steps alone.
    pub compiled_step: bool,
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
    /// Whether linear layers under FP8 keep their inputs as they came and quantize them again in backward, rather than in 8 bits.
    pub keeps_unquantized_inputs: bool,
    /// Whether queries with as many groups as heads are rotated where the reordered projection left them, so that the keys
    /// and values in the same storage live as long as they do, beside the copies that the kernel reads.
    pub queries_hold_projection: bool,
    /// Whether positions are added for the whole sequence before it is cut over the tensor ranks.
    pub positions_before_cut: bool,
    /// The attention mask that is alive while the loss runs.
    pub batch_mask: BatchMask,
    /// Whether attention and MLP that read the same input are summed before one reduction over tensor ranks.
    pub sums_before_reducing: bool,
    /// Whether the output layer accumulates its weight gradient in the product, so that none is made.
    pub accumulates_output_layer: bool,
    /// The loss that runs whatever Megatron's options say; none where these decide.
    pub loss: Option<LossKind>,
    /// Whether each projection of one input reduces its own part of that input's gradient over tensor ranks.
    pub reduces_each_projection: bool,
    /// Whether every tensor rank gathers all logits, and takes the whole loss of them.
    pub gathers_logits: bool,
    /// Whether nothing holds the 16-bit logits any longer once they are cast to fp32 for the loss.
    pub drops_cast_logits: bool,
    /// Whether a pipeline gathers the last stage's outputs and has buffers of its own for every micro-batch
    /// (`torch.distributed.pipelining`).
    pub gathers_pipeline_outputs: bool,
    /// Whether replicas of a pipeline's stage reduce gradients behind its last micro-batch alone, whatever they share
    /// (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync`).
    pub pipelines_hold_reductions: bool,
    /// Whether selective checkpointing keeps every second product of a layer, whatever modules are named.
    pub keeps_every_second_product: bool,
    /// Whether layers at even distances can be checkpointed and those between them kept.
    pub checkpoints_between: bool,
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
    /// Whether an interleaved pipeline with as many micro-batches as stages runs all forwards first.
    pub all_warmup_when_few: bool,
    /// How its modules are written, where they are of plain PyTorch.
    pub modules: Modules,
    /// What its launch scripts can ask for.
    pub offers: Offers,
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
    /// The same, each of whose operations is counted.
    Modules,
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
    /// Whether the only group is not repeated: expanding it is a view.
    pub views_one_group: bool,
    /// Whether they are where that kernel is PyTorch's, as flash-attn takes groups as they are.
    pub repeats_for_sdpa: bool,
    /// Whose adapters stand beside its linear layers.
    pub adapters: AdapterLibrary,
    /// Whether queries, keys and values are one projection, whose adapters share an A.
    pub joins_projections: bool,
    /// Whether it is known what its modules keep over quantized weights.
    pub quantizes: bool,
    /// Whether a layer with a window makes a mask of its own, one for all samples and however long the window is.
    pub masks_every_window: bool,
    /// Whether the output layer is quantized with the others.
    pub quantizes_output: bool,
    /// Whether quantized weights are unpacked in fp16 whatever is computed in, so that another format is a copy.
    pub unpacks_in_fp16: bool,
    /// Whether projections with adapters, and an MLP of them, are one autograd function each, with a backward pass written by
    /// hand: it keeps the input, and of an MLP what goes into the activation.
    pub fuses_adapters: bool,
    /// Attention of models with capped scores is one region that torch.compile compiles, and the model holds a causal mask and a window's
    /// of its whole length.
    pub compiles_capped_scores: bool,
    /// Whether the frozen originals of modules that train as copies are taken off the device.
    pub originals_away: bool,
    /// Parts in which a chunked loss takes a micro-batch.
    pub loss_chunks: u64,
    /// Most bytes of logits and what is made of them in one chunk of a fused output layer and loss; none where the hidden size decides (Liger).
    pub logits_chunk: Option<u64>,
    /// Whether a LayerNorm runs in fp32 under autocast, and keeps input and weights so.
    pub fp32_layer_norm: bool,
    /// Whether rotated queries keep the layout in which the projection left them, which the kernel's output takes: it is then
    /// read as it is, else as a copy.
    pub rotates_in_place: bool,
    /// Whether a compiled layer is in parts, in front of the attention's kernel and behind it, which the compiler cannot look
    /// into.
    pub breaks_at_attention: bool,
    /// Whether a compiled layer is one graph, its attention's kernel an operator of it, and last norm, output layer and loss are
    /// another, which keeps the logits as they are.
    pub compiles_whole: bool,
    /// Whether the loss is taken of a copy of the logits without each sequence's last token.
    pub shifts_logits: bool,
    /// Whether labels come moved by one, so that the loss takes all of the logits.
    pub labels_come_moved: bool,
    /// Whether what the model returns is handed on in fp32 under autocast, but for DeepSpeed's engine and FSDP2
    /// (`accelerate/accelerator.py:prepare_model`, `convert_outputs_to_fp32`).
    pub hands_on_fp32: bool,
    /// Whether the logits of a preference's reference stay named until those of the next one are there, where its trainer names
    /// them at all; else they are gone when it runs.
    pub holds_last_reference: bool,
    /// Whether inputs of recomputed layers that went to the host come back as tensors of their own, each before the last one is let go
    /// of; else into two buffers, and small ones do not go.
    pub streams_inputs: bool,
    /// Whether a model that caps its logits caps what its last norm makes instead.
    pub caps_last_norm: bool,
    /// Whether gradients are let go of as soon as the optimizer has stepped, so that there are none between steps
    /// (`transformers/trainer.py`: `zero_grad` behind `step`); else in front of the next ones.
    pub drops_gradients: bool,
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
    /// The same, but the normalised input in the type of the weights where queries and keys have norms too.
    KernelAlone,
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
    /// In fp32, made once by each layer for itself and held.
    EachLayer,
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
