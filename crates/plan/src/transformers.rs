//! What transformers and its trainers choose apart from the layout.

use super::number::NumberFormat;
use super::tuning::{DataEngine, ExpertKernel};

/// How PyTorch's DistributedDataParallel fills its buckets (`torch/csrc/distributed/c10d/reducer.cpp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DdpBuckets {
    /// Whether it looks for parameters without a gradient: then buckets stay as they were made, in the order in which parameters
    /// are registered. Otherwise they are made anew after the first step, in the order in which gradients were there.
    pub finds_unused: bool,
    /// Bytes at which a bucket is closed.
    pub cap: u64,
}

impl DdpBuckets {
    /// Where nothing is stated (`torch/nn/parallel/distributed.py:_DEFAULT_BUCKET_CAP_MB`).
    pub const CAP: u64 = 25 << 20;
}

/// What a loss does with the model's logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreferenceLogits {
    /// Computes the log-probabilities one sequence at a time in the logits' own format, and frees the logits before
    /// the reference runs.
    #[default]
    Dropped,
    /// The same, but the logits stay alive while the reference computes its own and until metrics are taken from
    /// them, even without a preference loss (TRL).
    Own,
    /// Casts them to fp32 and computes the log-softmax of all at once; they stay alive while the reference runs
    /// (LLaMA-Factory).
    Fp32,
    /// Computes the log-softmax of all at once in the model's output format; they stay alive until the loss is
    /// computed (SimPO's own trainer, which has no reference).
    Whole,
    /// Divides them by a temperature and computes the log-softmax of all at once, in fp32. The policy's logits are
    /// freed before the reference runs, while the reference's stay referenced until the next ones exist (torchtune).
    Named,
    /// Computes the log-probabilities one sequence at a time, and the cross entropy of chosen samples as well; the
    /// logits stay alive until metrics are taken from them. The loss uses the odds of both samples, from mean
    /// log-probabilities (TRL's ORPO).
    Odds,
    /// The same with the difference of sums of log-probabilities (TRL's CPO).
    Contrast,
    /// The same with the difference of means (TRL's SimPO with `cpo_alpha`).
    ContrastOfMeans,
    /// Only that difference: the cross entropy has zero weight and is not computed (TRL's SimPO with `cpo_alpha` 0).
    Means,
    /// Has none: log-probabilities come of last hidden states, of all tokens but the last of each sequence (unsloth with DPO of TRL 0.29 to
    /// 1.14).
    States,
    /// The same for all tokens, with every layer's input referenced until the loss is computed (unsloth with DPO of
    /// TRL before 0.29).
    AllStates,
    /// The same for labelled tokens only, whose states are saved too (unsloth with TRL 1.15).
    LabelledStates,
    /// The same as `States` with the cross entropy of chosen samples and the odds of both (unsloth with TRL's ORPO).
    StatesOdds,
}

impl PreferenceLogits {
    /// Whether the cross entropy of chosen samples is computed as well.
    #[must_use]
    pub const fn has_chosen(self) -> bool {
        matches!(self, Self::Odds | Self::Contrast | Self::ContrastOfMeans)
    }

    /// Whether log-probabilities are computed from the last hidden states, so that the model has no logits.
    #[must_use]
    pub const fn of_states(self) -> bool {
        matches!(self, Self::States | Self::AllStates | Self::LabelledStates | Self::StatesOdds)
    }

    /// Whether the log-probabilities of a sequence are divided by its token count.
    #[must_use]
    pub const fn takes_means(self) -> bool {
        matches!(self, Self::Odds | Self::ContrastOfMeans | Self::Means)
    }
}

/// What `transformers` and its trainers choose in addition to the rest of a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformers {
    /// Number format of `torch.autocast`, under which the Trainer's `--bf16` and `--fp16` run.
    pub autocast: Option<NumberFormat>,
    /// Whether micro-batches come with a padding mask.
    pub padding_mask: bool,
    /// Whether the model fills a key/value cache in training (`use_cache`; the Trainer turns it off).
    pub cache: bool,
    /// Whether the loss is divided by the batch's count of tokens (`num_items_in_batch`).
    pub counts_tokens: bool,
    /// How experts are computed (`experts_implementation`).
    pub experts: ExpertKernel,
    /// Liger's kernels for norms.
    pub liger_norms: bool,
    /// Liger's kernels for gated activations. Its rotary kernel saves what transformers' own saves.
    pub liger_gates: bool,
    /// Whether a loss fused with the output layer sums its weight's gradient in fp32 (Liger's `accum_dtype`).
    pub fp32_accumulation: bool,
    /// Which engine wraps the model for data parallelism.
    pub engine: DataEngine,
    /// Number format in which FSDP reduces gradients, if the trainer states one (`MixedPrecision.reduce_dtype`).
    pub reduce: Option<NumberFormat>,
    /// Number format to which FSDP2 casts a layer's output, if the trainer states one
    /// (`MixedPrecisionPolicy.output_dtype`). A recomputed layer saves its input in that format: transformers 5.6
    /// checkpoints around FSDP's hooks (`GradientCheckpointingLayer.__call__`).
    pub output: Option<NumberFormat>,
    /// Whether embedding and output layer are separate FSDP units, gathered when they run and freed afterwards;
    /// otherwise they belong to the root unit, which stays gathered.
    pub ends_apart: bool,
    /// Whether linear layers, embedding and output layer are sharded over tensor ranks by NeMo Automodel's plans for
    /// PyTorch's DTensor: each column-parallel layer reduces the gradient of its own input
    /// (`nemo_automodel/components/distributed/optimized_tp_plans.py`).
    pub dtensor_plan: bool,
    /// Whether the embedding is a separate FSDP unit and the output layer is not.
    pub embedding_apart: bool,
    /// Whether the squared log-sum-exp of each token's logits is added to the loss (z-loss).
    pub z_loss: bool,
    /// Whether FSDP reduces gradients only with the last micro-batch of a step (`set_requires_gradient_sync`, `no_sync`),
    /// so that unsharded gradients are held until then.
    pub defers_reduction: bool,
    /// Whether FSDP2 frees what it gathered only behind a step's last backward pass (`set_reshard_after_backward`).
    pub keeps_gathered: bool,
    /// Whether column-parallel layers under sequence parallelism save their input as it was gathered over tensor ranks, so that
    /// backward gathers nothing again.
    pub gathered_inputs: bool,
    /// Sequences in one evaluation batch between steps; 0 if none is counted.
    pub evaluation_batch: u64,
    /// Whether an evaluation fills a cache of keys and values.
    pub evaluation_cache: bool,
    /// Tokens on one accelerator of a pack of which a policy takes log-probabilities; 0 if they are counted in
    /// sequences.
    pub log_prob_tokens: u64,
    /// What a preference loss does with the logits.
    pub preference_logits: PreferenceLogits,
    /// Whether the training loop keeps a reference to the model's output until it has the next one: its logits outlive the loss.
    pub holds_output: bool,
    /// Whether the optimizer steps each parameter as soon as backward has its gradient, which is then freed.
    pub steps_in_backward: bool,
    /// Whether Adam steps over all tensors at once, holding the square roots of their second moments as well.
    pub foreach_step: bool,
    /// Elements of all of DeepSpeed's reduce buckets; `None` under any other engine.
    pub reduce_buckets: Option<u64>,
    /// How PyTorch's DDP fills its buckets; `None` where it does not reduce the gradients of transformers' modules.
    pub ddp: Option<DdpBuckets>,
    /// Whether layers that are recomputed whole are compiled with their checkpoint: backward recomputes them part by
    /// part.
    pub compiled_checkpoints: bool,
    /// Whether layers that are recomputed whole use `torch.utils.checkpoint`'s reentrant variant, which reruns them
    /// as a separate graph and has no saved-tensor hooks.
    pub reentrant_checkpoints: bool,
    /// Whether gated delta rules run as transformers' reference in PyTorch, chunk after chunk, because
    /// flash-linear-attention is not installed.
    pub reference_mixers: bool,
}

impl Default for Transformers {
    fn default() -> Self {
        Self {
            autocast: None,
            padding_mask: false,
            cache: false,
            counts_tokens: true,
            experts: ExpertKernel::Grouped,
            liger_norms: false,
            liger_gates: false,
            fp32_accumulation: false,
            foreach_step: false,
            reduce_buckets: None,
            ddp: None,
            engine: DataEngine::Ddp,
            reduce: None,
            output: None,
            ends_apart: false,
            dtensor_plan: false,
            embedding_apart: false,
            z_loss: false,
            defers_reduction: false,
            keeps_gathered: false,
            gathered_inputs: false,
            evaluation_batch: 0,
            evaluation_cache: false,
            log_prob_tokens: 0,
            preference_logits: PreferenceLogits::Dropped,
            holds_output: false,
            steps_in_backward: false,
            compiled_checkpoints: false,
            reentrant_checkpoints: false,
            reference_mixers: false,
        }
    }
}
