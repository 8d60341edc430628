//! Which kernels run, where that decides what is kept.

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

/// Which release of FlashAttention is asked for: each is written for one generation, and keeps what the second keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlashRelease {
    /// None in particular: what the software comes with.
    #[default]
    Usual,
    /// FlashAttention-3 (2024), for Hopper.
    Third,
    /// FlashAttention-4 (2026), for Blackwell.
    Fourth,
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
    /// Norm that keeps its output instead of its input (Apex's; `TransformerConfig.memory_efficient_layer_norm`).
    pub memory_efficient_norm: bool,
    /// Layers compiled as a whole (`torch.compile`): a product's output that no backward reads is not kept.
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
    /// `--cross-entropy-loss-fusion` with the native implementation.
    NativeFused,
    /// `--cross-entropy-loss-fusion --cross-entropy-fusion-impl te`.
    TransformerEngine,
    /// Torch's loss compiled together with the cast in front of it: the logits are there in 16 bits alone.
    Compiled,
    /// Output projection and loss in one, a chunk of rows at a time (Liger, Cut Cross-Entropy): no logits are kept,
    /// the gradients of input and weight are made in the forward pass.
    FusedLinear,
    /// The logits in chunks, each cast to fp32 when its loss is taken: all chunks are there until the loss is.
    ChunkedLogits,
    /// Output projection and loss a chunk of tokens at a time, those left out that have no label: each chunk's logits are
    /// gone before the next, and its log-softmax is kept.
    ChunkedLinear,
    /// flash-attn's kernel over the logits as they are, in their own type: it keeps them, and makes their gradient apart from
    /// them (`flash_attn/ops/triton/cross_entropy.py`, `inplace_backward=False`).
    FusedLogits,
    /// All logits in fp32, their loss a chunk of rows at a time: of all tokens but the last of each sequence.
    ChunkedRows,
    /// Log-probabilities of given tokens over a vocabulary that ranks share, from logits in fp32: their log-softmax and then its
    /// softmax stand beside them, and the gradient beside the softmax (`nemo_rl/distributed/model_utils.py:DistributedLogprob`).
    Distributed,
    /// The same from logits in 16 bits, which stay beside their copy in fp32 (NeMo-RL's `defer_fp32_logits`).
    DistributedCopy,
    /// The same as [`Self::Distributed`] for so many tokens of each sequence at a time: the logits are kept in 16 bits, and a chunk's softmax worked out
    /// again in backward (NeMo-RL's `ChunkedDistributedLogprob`, behind `logprob_chunk_size`).
    DistributedChunks(u64),
    /// The same over logits that were cast to fp32 before, with a gradient in fp32 (SkyRL's).
    DistributedWideChunks(u64),
    /// Output projection and log-probabilities of so many tokens and a part of the vocabulary at a time, in forward and again in
    /// backward: no logits are kept (prime-rl's `FusedOutputLinear`).
    Tiled(u64),
    /// Output projection and log-probabilities of tiles of tokens and words, the logits of each overwritten by their gradient, and the
    /// gradients of input and weight summed in fp32 (TRL's `ChunkedLogProbFunction`, since 1.15).
    FusedTiles,
    /// Log-probability and entropy of each given token by one kernel, which keeps the logits as they are and makes their gradient apart
    /// from them (TRL's `_LogProbEntropyFunction`, since 1.14, in the trainers whose output layer is not fused: ORPO and CPO).
    TokenKernel,
}

/// What of a step is captured in CUDA graphs, whose memory stays reserved.
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
