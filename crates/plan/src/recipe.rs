//! How it is trained: batch, precision, optimizer, recomputation, kernels, overlap, software.

use super::asked::{Budget, LeftOut};
use super::beside::Beside;
use super::kernels::{AttentionKernel, CudaGraphs, FlashRelease, Fusions, LossKind};
use super::marks::Marks;
use super::moe::MoeRecipe;
use super::named_tensors::NamedTensors;
use super::number::NumberFormat;
use super::offload::Offload;
use super::optimizer::{DpSharding, Optimizer};
use super::precision::Fp8;
use super::recompute::Recompute;
use super::rollout::Rollout;
use super::software::Software;
use super::transformers::Transformers;
use super::tuning::{DataEngine, Tuning};
use shardscope_units::Bytes;

/// Everything about a run that is not model shape, machine or layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Micro-batch size b. Unit: sequence, on one data-parallel replica.
    pub micro_batch_size: u64,
    /// Global batch size: sequences of one step over all replicas.
    pub global_batch_size: u64,
    /// Tokens of the longest sample if a sequence is a pack of samples, which do not attend to each other. `None` if
    /// micro-batches count samples.
    pub sample_length: Option<u64>,
    /// Micro-batches of one step on each replica, m = global / (micro · d).
    pub num_micro_batches: u64,
    /// Number format of weights and activations.
    pub params_dtype: NumberFormat,
    /// Number format in which gradients are accumulated and reduced.
    pub grads_dtype: NumberFormat,
    /// Matrix products in 8 or 4 bits; `None` if they are in 16.
    pub fp8: Option<Fp8>,
    /// `--fp32-residual-connection`.
    pub fp32_residual: bool,
    /// The optimizer and its number formats.
    pub optimizer: Optimizer,
    /// How data-parallel replicas share weights, gradients and states.
    pub dp_sharding: DpSharding,
    /// Recomputation of activations.
    pub recompute: Recompute,
    /// Tensors that recomputed layers keep by name.
    pub named: NamedTensors,
    /// Whether some steps also take the norms of all gradients and weights (levanter's `trainer.watch`).
    pub watched_norms: bool,
    /// Which attention kernel runs.
    pub attention_kernel: AttentionKernel,
    /// Which release of FlashAttention, where that kernel runs.
    pub flash_release: FlashRelease,
    /// `--hidden-dropout` above 0.
    pub hidden_dropout: bool,
    /// `--attention-dropout` above 0.
    pub attention_dropout: bool,
    /// Which fusions are on.
    pub fusions: Fusions,
    /// Which cross entropy runs.
    pub loss: LossKind,
    /// Which communication overlaps with compute.
    pub overlap: Overlap,
    /// Mixture-of-experts choices.
    pub moe: MoeRecipe,
    /// Which software runs the plan.
    pub software: Software,
    /// What is moved to the host.
    pub offload: Offload,
    /// Micro-batches whose weight gradient of the output layer is deferred
    /// (`--defer-embedding-wgrad-compute` with `--wgrad-deferral-limit`); 0 when off.
    pub wgrad_deferral_limit: u64,
    /// Whether every micro-batch brings an attention mask (off with
    /// `--no-create-attention-mask-in-dataloader`).
    pub attention_mask: bool,
    /// Bytes of one cuBLAS workspace where the run sets them (`CUBLAS_WORKSPACE_CONFIG`, which
    /// `--deterministic-mode` asks for).
    pub cublas_workspace: Option<Bytes>,
    /// Whether PyTorch's allocator grows its segments (`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`).
    pub expandable_segments: bool,
    /// What CUDA graphs capture (`--enable-cuda-graph`, `--cuda-graph-impl`).
    pub cuda_graphs: CudaGraphs,
    /// Length of the training, and its price.
    pub budget: Budget,
    /// Terms of the device's memory that the reader leaves out.
    pub left_out: LeftOut,
    /// Share of the device's memory that is to stay free, 0 to 0.5: a run that needs some of it is tight.
    pub headroom: f64,
    /// What trains and what is frozen.
    pub tuning: Tuning,
    /// What `transformers` and its trainers choose.
    pub transformers: Transformers,
    /// How rollouts are made, in reinforcement learning.
    pub rollout: Option<Rollout>,
    /// Models alongside the policy that have their own shape, in reinforcement learning.
    pub beside: Beside,
    /// Settings of the run that the figures do not account for.
    pub marks: Marks,
}

/// The share of a device's memory that is to stay free unless the reader says otherwise: reserved memory was measured 2 to
/// 7 % above allocated (SimuMax's runs on B200), and fragmentation differs from run to run.
pub const HEADROOM: f64 = 0.04;

impl Recipe {
    /// Whether optimizer states, or a part of them, stay on the host.
    #[must_use]
    pub fn optimizer_on_host(&self) -> bool {
        self.offload.optimizer || self.optimizer.cpu_offload_fraction > 0.0
    }

    /// Number format of a layer's weights while it runs. FSDP gathers them in autocast's format, and DeepSpeed's
    /// engine holds them in it; otherwise they stay as loaded.
    #[must_use]
    pub fn module_dtype(&self) -> NumberFormat {
        // Under DDP autocast copies a weight for each product; the module itself keeps the loaded format.
        if self.transformers.engine == DataEngine::Ddp { self.params_dtype } else { self.compute_dtype() }
    }

    /// Number format in which gradients are communicated. Under modules of plain PyTorch: accelerate's mixed
    /// precision reduces in the format that FSDP gathers in (`FullyShardedDataParallelPlugin.set_mixed_precision`)
    /// unless the trainer states another ([`Transformers::reduce`]), DeepSpeed in its `communication_data_type`, the
    /// format of its module. Otherwise it is the format in which they are accumulated.
    #[must_use]
    pub fn reduce_dtype(&self) -> NumberFormat {
        match self.transformers.engine {
            DataEngine::Ddp => self.grads_dtype,
            DataEngine::Fsdp1 | DataEngine::Fsdp2 => {
                self.transformers.reduce.unwrap_or_else(|| self.module_dtype())
            }
            DataEngine::DeepSpeed => self.module_dtype(),
        }
    }

    /// The same of adapters. PyTorch's DDP fills its buckets with gradients of one format each, that of their parameters
    /// (`torch/csrc/distributed/c10d/reducer.cpp:compute_bucket_assignment_by_size`), where PEFT's adapters may be in
    /// fp32 over weights in 16 bits.
    #[must_use]
    pub fn adapters_reduce_dtype(&self) -> NumberFormat {
        let own = self.software.semantics().steps_parameters && self.transformers.engine == DataEngine::Ddp;
        self.tuning.lora.filter(|_| own).map_or_else(|| self.reduce_dtype(), |lora| lora.dtype)
    }

    /// Number format of the residual stream from layer to layer: that of the layers, or what FSDP2 casts their
    /// outputs to, casting back before the next one. What the embedding passes to the first layer is not cast, but is
    /// assumed to match the others.
    #[must_use]
    pub fn stream_dtype(&self) -> NumberFormat {
        match self.transformers.output {
            Some(output) if self.transformers.engine == DataEngine::Fsdp2 => output,
            _ => self.module_dtype(),
        }
    }

    /// Whether full gradients are held until a step's last micro-batch, with which FSDP reduces them.
    #[must_use]
    pub fn defers_reduction(&self) -> bool {
        self.transformers.defers_reduction
            && self.num_micro_batches > 1
            && matches!(self.transformers.engine, DataEngine::Fsdp1 | DataEngine::Fsdp2)
    }

    /// Number format in which FSDP holds full gradients until then: FSDP2 in that of their reduction
    /// (`_fsdp_param.py:unsharded_grad_dtype`, `to_accumulated_grad_if_needed` before PyTorch 2.15), FSDP1 as backward
    /// computed them (`_runtime_utils.py:_post_backward_hook` returns before it casts them).
    #[must_use]
    pub fn deferred_dtype(&self) -> NumberFormat {
        if self.transformers.engine == DataEngine::Fsdp1 { self.module_dtype() } else { self.reduce_dtype() }
    }

    /// Whether PyTorch's FSDP shards the weights, if anything does: under plain PyTorch modules the engine says so.
    #[must_use]
    pub fn is_of_torch_fsdp(&self) -> bool {
        let semantics = self.software.semantics();
        if semantics.eager_modules { self.shards_by_fsdp() } else { semantics.fsdp_fp32_shards }
    }

    /// Whether the optimizer steps weights that are held in 16 bits and have no fp32 copy, in software whose FSDP
    /// otherwise holds fp32 shards (torchtitan's `training.dtype`).
    #[must_use]
    pub fn steps_narrow_shards(&self) -> bool {
        let narrow = self.optimizer.main_params.width() < NumberFormat::Fp32.width();
        let semantics = self.software.semantics();
        semantics.fsdp_fp32_shards && !semantics.eager_modules && narrow
    }

    /// Whether PyTorch's FSDP wraps modules of transformers.
    #[must_use]
    pub fn shards_by_fsdp(&self) -> bool {
        self.software.semantics().eager_modules
            && matches!(self.transformers.engine, DataEngine::Fsdp1 | DataEngine::Fsdp2)
    }

    /// Whether matrix products cast weights and inputs on the fly (`torch.autocast` over weights of another format).
    #[must_use]
    pub fn autocasts(&self) -> bool {
        self.transformers.autocast.is_some() && self.transformers.engine == DataEngine::Ddp
    }

    /// Number format of matrix products: autocast's, or the weights'.
    #[must_use]
    pub fn compute_dtype(&self) -> NumberFormat {
        match self.transformers.autocast {
            // A format no narrower than the weights' own changes no size.
            Some(format) if format.width() < self.params_dtype.width() => format,
            _ => self.params_dtype,
        }
    }
}

/// Which communication overlaps with compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// `--overlap-grad-reduce`.
    pub grad_reduce: bool,
    /// `--overlap-param-gather`.
    pub param_gather: bool,
    /// `--tp-comm-overlap`.
    pub tensor: bool,
    /// Pipeline sends overlap (interleaved schedule, unless switched off).
    pub pipeline: bool,
    /// `--overlap-moe-expert-parallel-comm`.
    pub expert: bool,
    /// `--moe-shared-expert-overlap`.
    pub shared_expert: bool,
    /// `CUDA_DEVICE_MAX_CONNECTIONS=1` asynchronous tensor-parallel backward
    /// (on unless `--no-async-tensor-model-parallel-allreduce`).
    pub tensor_backward: bool,
}
