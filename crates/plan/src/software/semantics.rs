//! Facts about a software: what it saves, fuses, gathers and launches.

use super::offers::Offers;
use crate::adapters::AdapterLibrary;
use crate::kernels::LossKind;

/// What a software's layers save, fuse and gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semantics {
    /// Whether layers are plain PyTorch modules, each operation of which saves what it needs on its own.
    pub eager_modules: bool,
    /// Whether the optimizer steps the model's own parameters, in their own dtype, unless an engine says otherwise.
    pub steps_parameters: bool,
    /// Whether MoE layers refuse to train under TP without sequence parallelism even without expert parallelism.
    pub experts_need_sequence: bool,
    /// Whether the software shards a model over ranks other than data-parallel ones.
    pub cuts_models: bool,
    /// Whether gradients are freed between steps, so that the first backward pass of a step allocates each when it
    /// reaches its parameter (`zero_grad(set_to_none=True)`), unless an engine holds them in buffers.
    pub makes_gradients_anew: bool,
    /// Whether one compiler lays out a whole step and decides what is in memory when (XLA), so that memory is known
    /// only at the peaks of steps that were compiled.
    pub compiled_step: bool,
    /// Whether such a compiler computes the weight gradient of the output layer after the layers' backward pass, so that
    /// the gradient of the logits is alive until then.
    pub logits_gradient_waits: bool,
    /// Whether gradients of fp32 shards stay in the format in which layers compute them, up to the optimizer.
    pub gradients_as_computed: bool,
    /// What a gated activation saves in addition to its input and its output.
    pub gated_activation: GatedActivation,
    /// Whether a norm's weight is created with the projection after it (Transformer Engine's `LayerNormLinear`).
    pub norm_in_projection: bool,
    /// Whether a linear layer allocates its own weight gradient even if gradients are accumulated in the matmul:
    /// autograd gets a dummy of the same size.
    pub stand_in_each_time: bool,
    /// Whether cuDNN's attention gets copies of queries, keys and values, or views of the projection's output.
    pub copies_attention_inputs: bool,
    /// Whether linear layers under FP8 save their inputs unquantized and quantize them again in backward, rather than
    /// saving 8 bits.
    pub keeps_unquantized_inputs: bool,
    /// Whether queries, if there are as many groups as heads, are rotated in place in the reordered projection's
    /// output, so that the keys and values in the same storage stay alive with them, in addition to the copies that
    /// the kernel reads.
    pub queries_hold_projection: bool,
    /// Whether positions are added for the whole sequence before it is split over the tensor ranks.
    pub positions_before_cut: bool,
    /// The attention mask that is alive while the loss runs.
    pub batch_mask: BatchMask,
    /// Whether attention and MLP that read the same input are summed before one reduction over tensor ranks.
    pub sums_before_reducing: bool,
    /// Whether the output layer accumulates its weight gradient in the matmul, so that none is allocated.
    pub accumulates_output_layer: bool,
    /// The loss that runs regardless of Megatron's options; `None` if these decide.
    pub loss: Option<LossKind>,
    /// Whether each of several projections of the same input reduces its own part of that input's gradient over
    /// tensor ranks.
    pub reduces_each_projection: bool,
    /// Whether every tensor rank gathers all logits, and computes the full loss from them.
    pub gathers_logits: bool,
    /// Whether the 16-bit logits are freed once they are cast to fp32 for the loss.
    pub drops_cast_logits: bool,
    /// Whether a pipeline gathers the last stage's outputs and has separate buffers for every micro-batch
    /// (`torch.distributed.pipelining`).
    pub gathers_pipeline_outputs: bool,
    /// Whether replicas of a pipeline stage reduce gradients only after its last micro-batch, regardless of sharding
    /// (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync`).
    pub pipelines_hold_reductions: bool,
    /// Whether selective checkpointing saves every second matmul of a layer, regardless of which modules are named.
    pub keeps_every_second_product: bool,
    /// Whether layers that are not compiled run each operation of torchtitan's models as a kernel of its own.
    pub runs_as_written: bool,
    /// Whether layers at a regular interval can be checkpointed and those between them saved.
    pub checkpoints_between: bool,
    /// How the host launches kernels, which bounds the time of a step that is too small to keep the device busy.
    pub issue: HostIssue,
    /// Which build of fused attention its models call.
    pub attention_build: AttentionBuild,
    /// Whether linear layers are `torch.nn.Linear`, with neither Megatron's fusions nor Transformer Engine's kernels.
    pub pytorch_linears: bool,
    /// Whether layers are Transformer Engine's modules, which have a workspace and dummy weight gradients.
    pub transformer_engine: bool,
    /// Whether DeepSpeed's engine holds gradients and optimizer states, in its own flat buffers.
    pub deepspeed_engine: bool,
    /// Which layers share Megatron's growing global memory buffer.
    pub memory_buffer: MemoryBuffer,
    /// How parameters are laid out in contiguous gradient buffers.
    pub gradient_buffers: GradientBuffers,
    /// Whether FSDP has cast what it reduced to its shards' format when the optimizer gets it, so that no step copies
    /// gradients that were reduced in 16 bits. Not said of software over FSDP1, with whose published runs the time of
    /// such copies was fitted.
    pub casts_reduced_gradients: bool,
    /// Whether FSDP holds weights as shards, fp32 unless main parameters are said to be narrower, and casts them when
    /// they are gathered.
    pub fsdp_fp32_shards: bool,
    /// Whether embedding and output layer are a separate FSDP unit, regardless of the engine.
    pub fsdp_wraps_ends: bool,
    /// Which of the weights outside of layers FSDP keeps gathered from forward to backward, although it frees those of layers.
    pub ends_gathered: EndsGathered,
    /// Whether a pipeline stage sends each tensor rank's part of an activation, which the next stage gathers.
    pub scatters_between_stages: bool,
    /// Whether an interleaved pipeline with as many micro-batches as stages runs all forwards first.
    pub all_warmup_when_few: bool,
    /// How its modules are written, if they are plain PyTorch.
    pub modules: Modules,
    /// What its launch scripts can request.
    pub offers: Offers,
}

/// How the host launches kernels: how much Python runs for each, and whether a compiler has fused them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostIssue {
    /// Megatron core's loop.
    MegatronCore,
    /// `megatron/model` of 2023 and its forks.
    MegatronLegacy,
    /// PyTorch modules, one operation after the other.
    Eager,
    /// The same, with each operation counted.
    Modules,
    /// Layers under `torch.compile`.
    Compiled,
}

/// A build of fused attention, each reaching a different fraction of the device's peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionBuild {
    /// flash-attn or cuDNN, called by the software itself.
    Native,
    /// FlashAttention-1 in Triton, as used by trainers in 2023.
    Triton,
    /// FlashAttention-2 as shipped in `torch.nn.functional.scaled_dot_product_attention`.
    Pytorch,
}

/// Weights outside of layers that stay gathered from forward to backward at FSDP's stage 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsGathered {
    /// None: backward gathers all of them again.
    Nothing,
    /// Those after the layers, with which backward begins, and a table that they share.
    AfterLayers,
    /// The root unit, that is all that is no unit of its own.
    Root,
}

/// Layers that use Megatron's growing buffer (`megatron/core/utils.py:GlobalMemoryBuffer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryBuffer {
    /// None: the software is not Megatron.
    Absent,
    /// Only the output layer; the others are Transformer Engine's.
    OutputLayer,
    /// All.
    AllLayers,
}

/// How a rank's gradients are laid out in contiguous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientBuffers {
    /// Aligned and padded for the distributed optimizer (`megatron/core/distributed/param_and_grad_buffer.py`).
    MegatronCore,
    /// One after the other, padded only at the end (`megatron/model/distributed.py`).
    MegatronLegacy,
    /// Not Megatron's: without padding.
    Plain,
}

/// How a library writes its plain PyTorch modules, which determines the tensors that each operation saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modules {
    /// The library's name.
    pub name: &'static str,
    /// What a norm multiplies by its weight.
    pub norm: NormModule,
    /// Where the cosines and sines of the rotary embedding live.
    pub rotation: Rotation,
    /// Whether keys and values are repeated for every query head before the attention's kernel.
    pub repeats_groups: bool,
    /// Whether a single group is not copied: expanding it is a view.
    pub views_one_group: bool,
    /// Whether they are repeated if that kernel is PyTorch's; flash-attn supports groups directly.
    pub repeats_for_sdpa: bool,
    /// Which library's adapters it adds to its linear layers.
    pub adapters: AdapterLibrary,
    /// Whether experts are grouped products of its own behind a fused exchange (DeepEP), in models whose norms are all
    /// one kernel and whose attention is Transformer Engine's.
    pub dispatches_experts: bool,
    /// Whether queries, keys and values are one projection, whose adapters share an A.
    pub joins_projections: bool,
    /// Whether it is known what its modules save with quantized weights.
    pub quantizes: bool,
    /// Whether a layer with a window builds its own mask, one for all samples, regardless of the window's length.
    pub masks_every_window: bool,
    /// Whether the output layer is quantized along with the others.
    pub quantizes_output: bool,
    /// Whether quantized weights are dequantized to fp16 regardless of the compute dtype, so that any other format
    /// needs a copy.
    pub unpacks_in_fp16: bool,
    /// Whether projections with adapters, and an MLP of them, are one autograd function each, with a hand-written
    /// backward pass: it saves the input and, for an MLP, the activation's inputs.
    pub fuses_adapters: bool,
    /// Whether attention of models with capped scores is one region under torch.compile, and the model holds a causal
    /// mask and a window mask of its full length.
    pub compiles_capped_scores: bool,
    /// Whether the frozen originals of modules that are trained as copies are moved off the device.
    pub originals_away: bool,
    /// Number of chunks into which a chunked loss splits a micro-batch.
    pub loss_chunks: u64,
    /// Most bytes of logits and tensors derived from them in one chunk of a fused output layer and loss; `None` if
    /// the hidden size decides (Liger).
    pub logits_chunk: Option<u64>,
    /// Whether a LayerNorm runs in fp32 under autocast, and saves input and weights in fp32.
    pub fp32_layer_norm: bool,
    /// Whether rotated queries keep the layout in which the projection left them, which the kernel's output inherits:
    /// it is then read directly, otherwise through a copy.
    pub rotates_in_place: bool,
    /// Whether a compiled layer has a graph break at the attention kernel, which the compiler cannot trace into: one
    /// part before it and one after.
    pub breaks_at_attention: bool,
    /// Whether a compiled layer is one graph with the attention kernel as an operator in it, and the last norm,
    /// output layer and loss are another, which saves the logits as they are.
    pub compiles_whole: bool,
    /// Whether the loss is computed from a copy of the logits without each sequence's last token.
    pub shifts_logits: bool,
    /// Whether labels arrive already shifted by one, so that the loss uses all logits.
    pub labels_come_moved: bool,
    /// Whether the model's outputs are converted to fp32 under autocast, except with DeepSpeed's engine and FSDP2
    /// (`accelerate/accelerator.py:prepare_model`, `convert_outputs_to_fp32`).
    pub hands_on_fp32: bool,
    /// Whether the reference logits of a preference loss stay referenced until the next ones exist, if its trainer
    /// holds a name for them at all; otherwise they are freed by then.
    pub holds_last_reference: bool,
    /// Whether offloaded inputs of recomputed layers return as separate tensors, each before the last one is freed;
    /// otherwise they return into two buffers, and small ones are not offloaded.
    pub streams_inputs: bool,
    /// Whether a model that caps its logits caps the last norm's output instead.
    pub caps_last_norm: bool,
    /// Whether gradients are freed as soon as the optimizer has stepped, so that there are none between steps
    /// (`transformers/trainer.py`: `zero_grad` after `step`); otherwise just before the next ones.
    pub drops_gradients: bool,
    /// Whether `bf16` and `fp16` are the weights' formats; otherwise they are those of `torch.autocast` over them.
    pub casts_weights_once: bool,
}

/// What an RMSNorm of plain operations multiplies by its weight, and so saves if the weight trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormModule {
    /// The normalised input in the weights' dtype.
    CastBefore,
    /// The normalised input in fp32.
    CastAfter,
    /// The same, with a copy of the weight in fp32.
    Widened,
    /// One kernel, which saves its input in its own dtype and recomputes the rest.
    Kernel,
    /// The same, but the normalised input in the weights' dtype if queries and keys have norms too.
    KernelAlone,
}

/// Where the cosines and sines of the rotary embedding live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// Computed in each forward pass, one table for all layers.
    Shared,
    /// In buffers of the model. Qwen's models cast them to the heads' dtype, separately for queries and for keys.
    Buffers,
    /// In buffers of the model, and used as they are.
    Whole,
    /// In fp32, computed once by each layer and retained.
    EachLayer,
}

/// How a gated activation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatedActivation {
    /// One kernel; if turned off, a function and a product with an offset, each with its own copy.
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
    /// One for each, if the data loader creates it.
    Each,
}
