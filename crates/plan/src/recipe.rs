//! How it is trained: batch, precision, optimizer, recomputation, kernels, overlap, software.

use super::asked::{Budget, LeftOut};
use super::marks::Marks;
use super::number::Number;
use super::rollout::Rollout;
use super::tuning::{DataEngine, Transformers, Tuning};
use shardscope_units::Bytes;

/// Everything about a run that is neither shape, machine nor cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Sequences of one micro-batch on one data-parallel replica, b.
    pub micro_batch_size: u64,
    /// Sequences of one step over all replicas.
    pub global_batch_size: u64,
    /// m = global / (micro · d).
    pub num_micro_batches: u64,
    /// Number format of weights and activations.
    pub params_dtype: Number,
    /// Number format in which gradients are accumulated and reduced.
    pub grads_dtype: Number,
    /// fp8 matmuls, when used.
    pub fp8: Option<Fp8>,
    /// `--fp32-residual-connection`.
    pub fp32_residual: bool,
    /// The optimizer and its number formats.
    pub optimizer: Optimizer,
    /// How data-parallel replicas share weights, gradients and states.
    pub dp_sharding: DpSharding,
    /// Recomputation of activations.
    pub recompute: Recompute,
    /// Which attention kernel runs.
    pub attention_kernel: AttentionKernel,
    /// `--hidden-dropout` above 0.
    pub hidden_dropout: bool,
    /// `--attention-dropout` above 0.
    pub attention_dropout: bool,
    /// Which fusions are on.
    pub fusions: Fusions,
    /// The loss kernel.
    pub loss: LossKind,
    /// What communication hides behind compute.
    pub overlap: Overlap,
    /// Mixture-of-experts choices.
    pub moe: MoeRecipe,
    /// Which software runs the plan.
    pub software: Software,
    /// Activation offloading and the like.
    pub offload: Offload,
    /// `--decoupled` deferral: micro-batches whose output-layer weight gradient is deferred
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
    /// How long the training is, and what it costs.
    pub budget: Budget,
    /// What is not counted of the device's memory.
    pub left_out: LeftOut,
    /// Share of the device's memory that is to stay free, 0 to 0.5: what needs some of it is tight.
    pub headroom: f64,
    /// What trains and what is frozen.
    pub tuning: Tuning,
    /// What `transformers` and its trainers choose.
    pub transformers: Transformers,
    /// How rollouts are made, in reinforcement learning.
    pub rollout: Option<Rollout>,
    /// Settings of the run that the figures leave out.
    pub marks: Marks,
}

/// The share of a device's memory that is to stay free unless the reader says otherwise: reserved memory was measured 2 to
/// 7 % above allocated (SimuMax's runs on B200), and fragmentation differs from run to run.
pub const HEADROOM: f64 = 0.04;

impl Recipe {
    /// Number format in which a layer's weights stand while it runs. FSDP gathers them in autocast's format, DeepSpeed's
    /// engine holds them in it; else they are as they were loaded.
    #[must_use]
    pub fn module_dtype(&self) -> Number {
        if self.transformers.engine == DataEngine::Ddp { self.params_dtype } else { self.compute_dtype() }
    }

    /// Number format in which gradients go between ranks. Under modules of plain PyTorch: accelerate's mixed precision reduces
    /// in the format that FSDP gathers in (`FullyShardedDataParallelPlugin.set_mixed_precision`), verl's in fp32
    /// (`MixedPrecision` of `fsdp_workers.py`), DeepSpeed in its `communication_data_type`, the format of its module. Else it
    /// is that in which they are accumulated.
    #[must_use]
    pub fn reduce_dtype(&self) -> Number {
        let in_fp32 =
            self.rollout.as_ref().is_some_and(|rollout| rollout.framework.semantics(false).reduces_in_fp32);
        match self.transformers.engine {
            DataEngine::Ddp => self.grads_dtype,
            DataEngine::Fsdp1 | DataEngine::Fsdp2 if in_fp32 => Number::Fp32,
            DataEngine::Fsdp1 | DataEngine::Fsdp2 | DataEngine::DeepSpeed => self.module_dtype(),
        }
    }

    /// Whether PyTorch's FSDP wraps modules of transformers.
    #[must_use]
    pub fn shards_by_fsdp(&self) -> bool {
        self.software == Software::HfTransformers
            && matches!(self.transformers.engine, DataEngine::Fsdp1 | DataEngine::Fsdp2)
    }

    /// Whether products cast weights and inputs as they go (`torch.autocast` over weights of another format).
    #[must_use]
    pub fn autocasts(&self) -> bool {
        self.transformers.autocast.is_some() && self.transformers.engine == DataEngine::Ddp
    }

    /// Number format of matrix products: autocast's, or that of the weights.
    #[must_use]
    pub fn compute_dtype(&self) -> Number {
        match self.transformers.autocast {
            Some(format) if format.width() < self.params_dtype.width() => format,
            _ => self.params_dtype,
        }
    }
}

/// fp8 training (`--fp8-format`, `--fp8-recipe`, `--fp8-param-gather`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fp8 {
    /// `e4m3` or `hybrid`.
    pub format: String,
    /// How values are scaled.
    pub recipe: Fp8Recipe,
    /// Whether the weights themselves are fp8.
    pub param_gather: bool,
}

/// How values of 8 and 4 bits are scaled (`--fp8-recipe`; `nvfp4` by `--fp4-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fp8Recipe {
    /// By the largest values of earlier steps, Megatron's default.
    #[default]
    Delayed,
    /// By a tensor's largest value.
    Tensorwise,
    /// In blocks of 32 with powers of two.
    Mxfp8,
    /// In blocks of 128.
    Blockwise,
    /// By a recipe of the user's own.
    Custom,
    /// 4-bit values in blocks of 16.
    Nvfp4,
}

impl Fp8Recipe {
    /// Every recipe with Megatron's name for it.
    pub const NAMED: [(Self, &'static str); 6] = [
        (Self::Delayed, "delayed"),
        (Self::Tensorwise, "tensorwise"),
        (Self::Mxfp8, "mxfp8"),
        (Self::Blockwise, "blockwise"),
        (Self::Custom, "custom"),
        (Self::Nvfp4, "nvfp4"),
    ];

    /// Megatron's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(recipe, _)| *recipe == self).map_or("", |(_, name)| name)
    }

    /// The recipe of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == name).map(|(recipe, _)| *recipe)
    }
}

/// The optimizer and the formats of what it keeps per parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    /// Which one.
    pub kind: OptimizerKind,
    /// `--use-precision-aware-optimizer`.
    pub precision_aware: bool,
    /// `--main-params-dtype`.
    pub main_params: Number,
    /// `--exp-avg-dtype`.
    pub exp_avg: Number,
    /// `--exp-avg-sq-dtype`.
    pub exp_avg_sq: Number,
    /// Part of the states held by the host (`--optimizer-cpu-offload` with its fraction), 0 to 1.
    pub cpu_offload_fraction: f64,
    /// How states are held where they are not in a format of their own.
    pub states: StateFormat,
}

/// How an optimizer holds its states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFormat {
    /// One number for each element.
    #[default]
    Plain,
    /// A byte for each element and an fp32 constant for each block of 256 (bitsandbytes).
    EightBit,
    /// Half a byte for each element and an fp32 constant for each block of 128 (torchao).
    FourBit,
    /// An 8-bit float for each element and an fp32 constant for each block of 256 (torchao).
    Float8,
}

/// Which optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptimizerKind {
    /// Adam: two moments.
    Adam,
    /// SGD without momentum: none.
    Sgd,
    /// SGD with momentum: one.
    SgdMomentum,
    /// Muon: one momentum for matrices (Adam for the rest).
    Muon,
    /// Lion: one momentum (Chen et al. 2023).
    Lion,
    /// RMSprop or Adagrad: one sum of squares.
    SumOfSquares,
    /// Adam with a third moment (AdEMAMix, Pagliardini et al. 2024).
    AdEmaMix,
    /// Sums of squares by row and by column of a matrix (Shazeer and Stern 2018).
    Adafactor,
    /// Adam in the eigenbasis of two preconditioners of a matrix (Vyas et al. 2024).
    Soap,
    /// A momentum and two preconditioners of a matrix with their roots (Gupta et al. 2018).
    Shampoo,
}

/// How the data-parallel ranks share what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DpSharding {
    /// Everything replicated; gradients all-reduced.
    Replicated,
    /// Optimizer states sharded: distributed optimizer, ZeRO-1.
    OptimizerStates,
    /// States and gradients: ZeRO-2, `optim_grads`.
    Gradients,
    /// States, gradients and weights: ZeRO-3, FSDP, `optim_grads_params`.
    Parameters,
}

impl DpSharding {
    /// The ZeRO stage with the same sharding.
    #[must_use]
    pub const fn zero_stage(self) -> u64 {
        match self {
            Self::Replicated => 0,
            Self::OptimizerStates => 1,
            Self::Gradients => 2,
            Self::Parameters => 3,
        }
    }
}

/// Recomputation (`--recompute-granularity` and its companions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recompute {
    /// Everything is kept.
    None,
    /// Named modules of every layer.
    Selective(Vec<RecomputeModule>),
    /// Units of `num_layers` whole layers (`--recompute-method uniform`).
    Uniform {
        /// Layers of one unit.
        num_layers: u64,
        /// `--distribute-saved-activations`.
        distribute: bool,
    },
    /// The first `num_layers` layers of each chunk (`--recompute-method block`).
    Block {
        /// Layers recomputed per chunk.
        num_layers: u64,
        /// `--distribute-saved-activations`.
        distribute: bool,
    },
}

impl Recompute {
    /// Whether `module` is recomputed selectively.
    #[must_use]
    pub fn recomputes(&self, module: RecomputeModule) -> bool {
        matches!(self, Self::Selective(modules) if modules.contains(&module))
    }
}

/// `--recompute-modules`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputeModule {
    /// Scores, softmax, dropout and values.
    CoreAttention,
    /// Activation of the experts.
    MoeActivation,
    /// Input and pre-MLP norms.
    LayerNorm,
    /// MLA's up-projections.
    MlaUpProjection,
    /// A dense MLP.
    Mlp,
    /// A whole MoE layer.
    Moe,
    /// Shared experts.
    SharedExperts,
}

/// Which attention kernel runs, which decides what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionKernel {
    /// Materialised scores.
    Unfused,
    /// flash-attn package, batch first: copies at micro-batch above 1.
    Flash,
    /// cuDNN fused attention in s-b-h layout.
    Fused,
    /// PyTorch's `scaled_dot_product_attention`: as flash, but a padding mask repeats keys and values for every
    /// query head.
    Sdpa,
}

/// Fusions that change what is kept or how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fusions {
    /// Bias and activation in one kernel (`--no-bias-swiglu-fusion` and `--no-bias-gelu-fusion` turn it off).
    pub bias_activation: bool,
    /// Scale, mask and softmax in one kernel (`--no-masked-softmax-fusion` turns it off).
    pub masked_softmax: bool,
    /// Softmax computed in fp32 (`--attention-softmax-in-fp32`).
    pub softmax_in_fp32: bool,
    /// Weight gradients accumulated in the matmul (`--no-gradient-accumulation-fusion` turns it off).
    pub gradient_accumulation: bool,
    /// Bias, dropout and residual addition in one kernel.
    pub bias_dropout_add: bool,
    /// Rotary embedding in one kernel: keeps no cos and sin per layer.
    pub rope: bool,
    /// Norm that keeps its output instead of its input (`--no-persist..`, Apex memory-efficient).
    pub memory_efficient_norm: bool,
}

/// Which cross entropy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The 2023 code: 16-bit logits, an fp32 copy and a shifted copy.
    Legacy,
    /// Megatron core, not fused.
    Unfused,
    /// `torch.nn.functional.cross_entropy` on an fp32 copy of the logits.
    Torch,
    /// `--cross-entropy-loss-fusion` with the native implementation.
    NativeFused,
    /// `--cross-entropy-loss-fusion --cross-entropy-fusion-impl te`.
    TransformerEngine,
    /// Torch's loss compiled together with the cast in front of it: the logits are there in 16 bits alone.
    Compiled,
    /// Output projection and loss in one, a chunk of rows at a time (Liger, Cut Cross-Entropy): no logits are kept,
    /// the gradients of input and weight are made in the forward pass.
    FusedLinear,
}

/// What communication hides behind compute.
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

/// Mixture-of-experts choices that are not shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeRecipe {
    /// `--moe-token-dispatcher-type`.
    pub dispatcher: Dispatcher,
    /// `--moe-grouped-gemm`.
    pub grouped_gemm: bool,
    /// `--moe-expert-capacity-factor`.
    pub capacity_factor: Option<f64>,
    /// `--moe-pad-expert-input-to-capacity`.
    pub pad_to_capacity: bool,
    /// `--moe-permute-fusion`.
    pub permute_fusion: bool,
    /// Format of the routing probabilities (`--moe-router-dtype`).
    pub router_dtype: Number,
    /// `--moe-router-load-balancing-type`.
    pub load_balancing: LoadBalancing,
    /// `--moe-router-enable-expert-bias`.
    pub expert_bias: bool,
    /// `--moe-router-pre-softmax`.
    pub pre_softmax: bool,
}

/// What CUDA graphs capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudaGraphs {
    /// Nothing.
    #[default]
    None,
    /// Each layer, experts and their dispatch left out: the number of tokens of each is not known when a graph is captured
    /// (`transformer_engine`, `local`).
    Layers,
    /// Forward and backward of all micro-batches (`full_iteration`).
    Iteration,
}

/// `--moe-token-dispatcher-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatcher {
    /// Megatron's default.
    AllGather,
    /// Sends each token where it goes.
    AllToAll,
    /// DeepEP, HybridEP and the like.
    Flex,
}

/// `--moe-router-load-balancing-type`, and whether its loss has a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancing {
    /// A loss over the tokens of a micro-batch.
    AuxiliaryLoss,
    /// A loss over the tokens of each sequence.
    SequenceAuxiliaryLoss,
    /// A loss over the tokens of all replicas.
    GlobalAuxiliaryLoss,
    /// Sinkhorn.
    Sinkhorn,
    /// None: a loss without weight (Megatron's default), or a bias on the router.
    None,
}

impl LoadBalancing {
    /// Whether a loss keeps the scores of all experts for its gradient.
    #[must_use]
    pub const fn has_loss(self) -> bool {
        matches!(self, Self::AuxiliaryLoss | Self::SequenceAuxiliaryLoss | Self::GlobalAuxiliaryLoss)
    }
}

/// What is moved to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Offload {
    /// `--cpu-offloading-num-layers`.
    pub activation_layers: u64,
    /// DeepSpeed `offload_optimizer`.
    pub optimizer: bool,
    /// DeepSpeed `offload_param`.
    pub parameters: bool,
}

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
}

impl Software {
    /// Every software with its name in the report.
    pub const ALL: [Self; 9] = [
        Self::MegatronLegacy,
        Self::MegatronCoreLocal,
        Self::MegatronCoreTe,
        Self::MegatronDeepspeed,
        Self::Torchtitan,
        Self::Nanotron,
        Self::GptNeox,
        Self::TorchFsdp,
        Self::HfTransformers,
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
        }
    }
}
