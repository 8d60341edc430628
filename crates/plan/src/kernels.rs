//! Which kernels run, where that determines what is saved for backward.

/// Which attention kernel runs; this determines what it saves for backward.
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

/// Which release of FlashAttention is requested: each is written for one GPU generation, and saves the same tensors
/// as FlashAttention-2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlashRelease {
    /// No particular one: whatever the software ships with.
    #[default]
    Usual,
    /// FlashAttention-3 (2024), for Hopper.
    Third,
    /// FlashAttention-4 (2026), for Blackwell.
    Fourth,
}

/// Fusions that change what is saved for backward or how long a step takes.
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
    /// Rotary embedding in one kernel: saves no cos and sin per layer.
    pub rope: bool,
    /// RMSNorm in one kernel, where layers are not compiled (torchtitan's `model.norm_type` of 2024: `fused_rmsnorm` or `rmsnorm`).
    pub norm: bool,
    /// Norm that saves its output instead of its input (Apex's; `TransformerConfig.memory_efficient_layer_norm`).
    pub memory_efficient_norm: bool,
    /// Layers compiled as a whole (`torch.compile`): a matrix product's output that no backward reads is not saved.
    pub compiled_layers: bool,
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
    /// The same on the 16-bit logits themselves (`fp32_upcast: false` of NeMo Automodel's `MaskedCrossEntropy`).
    TorchNarrow,
    /// `--cross-entropy-loss-fusion` with the native implementation.
    NativeFused,
    /// `--cross-entropy-loss-fusion --cross-entropy-fusion-impl te`.
    TransformerEngine,
    /// Torch's loss compiled together with the cast in front of it: the logits exist only in 16 bits.
    Compiled,
    /// Output projection and loss fused, one chunk of rows at a time (Liger, Cut Cross-Entropy): no logits are saved,
    /// and the gradients of input and weight are computed in the forward pass.
    FusedLinear,
    /// The logits in chunks, each cast to fp32 when its loss is computed: all chunks stay alive until the loss is
    /// done.
    ChunkedLogits,
    /// Output projection and loss one chunk of tokens at a time, skipping tokens without a label: each chunk's logits
    /// are freed before the next, and its log-softmax is saved.
    ChunkedLinear,
    /// flash-attn's kernel on the logits in their own dtype: it saves them and allocates their gradient separately
    /// (`flash_attn/ops/triton/cross_entropy.py`, `inplace_backward=False`).
    FusedLogits,
    /// The same with the logits overwritten by their gradient, after a division of the logits by a temperature in place, whose
    /// backward pass allocates the gradient that the output layer gets (verl's supervised trainer over engines:
    /// `verl/workers/engine/fsdp/transformer_impl.py:prepare_model_outputs`,
    /// `verl/utils/torch_functional.py:logprobs_from_logits_flash_attn`, `inplace_backward=True`).
    InPlaceLogits,
    /// All logits in fp32, with the loss one chunk of rows at a time, over all tokens but the last of each sequence.
    ChunkedRows,
    /// Log-probabilities of given tokens over a vocabulary sharded across ranks, from fp32 logits: their log-softmax
    /// and then its softmax are held in addition to them, and the gradient in addition to the softmax
    /// (`nemo_rl/distributed/model_utils.py:DistributedLogprob`).
    Distributed,
    /// The same from 16-bit logits, which are held along with their fp32 copy (NeMo-RL's `defer_fp32_logits`).
    DistributedCopy,
    /// The same as [`Self::Distributed`], but this many tokens of each sequence at a time: the logits are saved in 16
    /// bits, and a chunk's softmax is recomputed in backward (NeMo-RL's `ChunkedDistributedLogprob`, behind
    /// `logprob_chunk_size`).
    DistributedChunks(u64),
    /// The same over logits that were already cast to fp32, with a gradient in fp32 (SkyRL's).
    DistributedWideChunks(u64),
    /// Output projection and log-probabilities of this many tokens and a slice of the vocabulary at a time, in
    /// forward and again in backward: no logits are saved (prime-rl's `FusedOutputLinear`).
    Tiled(u64),
    /// Output projection, log-probabilities and entropies of 512 tokens at a time, in forward and again in backward: no
    /// logits are saved (verl's `FusedLinearForPPOFunction`, behind `use_fused_kernels`).
    PolicyRows,
    /// The same by Triton kernels: backward makes the logits' gradients for 9,504 words at a time
    /// (verl's `linear_cross_entropy`).
    PolicyKernel,
    /// Output projection and log-probabilities in tiles over tokens and vocabulary, with each tile's logits
    /// overwritten by their gradient and the gradients of input and weight accumulated in fp32 (TRL's
    /// `ChunkedLogProbFunction`, since 1.15).
    FusedTiles,
    /// Log-probability and entropy of each given token by one kernel, which saves the logits unchanged and allocates
    /// their gradient separately (TRL's `_LogProbEntropyFunction`, since 1.14, in the trainers whose output layer is
    /// not fused: ORPO and CPO).
    TokenKernel,
}

impl LossKind {
    /// Whether backward multiplies by the output layer's weight once more to have the logits again, of which none were saved:
    /// prime-rl's `_SequenceChunkedLogProbEntropyFn.backward`, verl's `_fused_linear_for_ppo_bwd` and
    /// `efficient_entropy_backward_kernel_general_d_logits_split_N`, TRL's `ChunkedLogProbFunction.backward`. Liger's and
    /// unsloth's have the gradients from forward. Cut Cross-Entropy's backward has the logits again too, but leaves out the
    /// gradients' products of every tile whose probabilities are all negligible (`cce_backward.py`): measured on an A100, 46.4 ms
    /// forward and 89.3 backward, of torch's compiled loss with two products there 49.9 and 92.3 (apple/ml-cross-entropy,
    /// README). So it counts as two products.
    #[must_use]
    pub const fn repeats_projection(self) -> bool {
        matches!(self, Self::Tiled(_) | Self::PolicyRows | Self::PolicyKernel | Self::FusedTiles)
    }
}

/// Which part of a step is captured in CUDA graphs, whose memory stays reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CudaGraphs {
    /// Nothing.
    #[default]
    None,
    /// Each layer, or these modules of it (`transformer_engine`, `local`).
    Layers(GraphModules),
    /// Forward and backward of all micro-batches (`full_iteration`).
    Iteration,
}

/// Modules of a layer that its graphs capture (`--cuda-graph-modules`, before 2026 `--cuda-graph-scope`;
/// `megatron/core/transformer/transformer_config.py:cuda_graph_modules`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphModules {
    /// Attention and the norm before it.
    pub attention: bool,
    /// A state-space mixer and the norm before it.
    pub mixer: bool,
    /// A dense MLP and the norm before it.
    pub mlp: bool,
    /// Experts with all that is around them, where their inputs are padded to a capacity: else the number of tokens of each is not
    /// known when a graph is captured.
    pub experts: bool,
    /// The norm before experts, the router, and shared experts that do not run beside the exchange.
    pub router: bool,
}

impl GraphModules {
    /// The whole layer.
    pub const LAYER: Self = Self { attention: true, mixer: true, mlp: true, experts: true, router: false };
    /// Their names.
    pub const NAMES: [&'static str; 6] = ["attn", "mamba", "mlp", "moe", "moe_router", "moe_preprocess"];

    /// Those of `names`, the whole layer where there are none; a name that is none of [`Self::NAMES`] is passed over.
    #[must_use]
    pub fn from_names(names: &[&str]) -> Self {
        if names.is_empty() || names.contains(&"full") {
            return Self::LAYER;
        }
        let mut modules = Self::default();
        for name in names {
            match *name {
                "attn" => modules.attention = true,
                "mamba" => modules.mixer = true,
                "mlp" => modules.mlp = true,
                "moe" => modules.experts = true,
                // What comes before the dispatch is captured with the router alone.
                "moe_router" => modules.router = true,
                _ => {}
            }
        }
        modules
    }
}
