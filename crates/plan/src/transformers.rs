//! What transformers and its trainers choose beside the layout.

use super::number::NumberFormat;
use super::tuning::{DataEngine, ExpertKernel};

/// What a loss behind the model does with its logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreferenceLogits {
    /// Takes the log-probabilities a sequence at a time in the logits' own format, and lets go of the logits before the
    /// reference runs.
    #[default]
    Dropped,
    /// The same, but the logits are alive while the reference makes its own and until metrics are taken of them, also where there
    /// is no preference (TRL).
    Own,
    /// Casts them to fp32 and takes the log-softmax of all at once; they are alive while the reference runs (LLaMA-Factory).
    Fp32,
    /// Takes the log-softmax of all at once in the format in which they are handed on; they are alive until the loss is there
    /// (SimPO's own trainer, which has no reference).
    Whole,
    /// Divides them by a temperature and takes the log-softmax of all at once, in fp32. The policy's are gone before the reference
    /// runs, whose own stay named until the next ones are there (torchtune).
    Named,
    /// Takes the log-probabilities a sequence at a time, and the cross entropy of chosen samples besides; they are alive until metrics
    /// are taken of them. The odds of both samples, of mean log-probabilities (TRL's ORPO).
    Odds,
    /// The same with the difference of sums of log-probabilities (TRL's CPO).
    Contrast,
    /// The same with the difference of means (TRL's SimPO with `cpo_alpha`).
    ContrastOfMeans,
    /// That difference alone: the cross entropy has no weight and is not taken (TRL's SimPO with `cpo_alpha` 0).
    Means,
    /// Has none: log-probabilities come of last hidden states, of all tokens but the last of each sequence (unsloth with DPO of TRL 0.29 to
    /// 1.14).
    States,
    /// The same of all tokens, and every layer's input has a name until the loss is there (unsloth with DPO of TRL before 0.29).
    AllStates,
    /// The same of tokens with a label, of which their states are kept too (unsloth with TRL 1.15).
    LabelledStates,
    /// The same as `States` with the cross entropy of chosen samples and the odds of both (unsloth with TRL's ORPO).
    StatesOdds,
}

impl PreferenceLogits {
    /// Whether the cross entropy of chosen samples stands beside what is picked.
    #[must_use]
    pub const fn has_chosen(self) -> bool {
        matches!(self, Self::Odds | Self::Contrast | Self::ContrastOfMeans)
    }

    /// Whether log-probabilities come of last hidden states, so that there are no logits behind the model.
    #[must_use]
    pub const fn of_states(self) -> bool {
        matches!(self, Self::States | Self::AllStates | Self::LabelledStates | Self::StatesOdds)
    }

    /// Whether the log-probabilities of a sequence are divided by the count of its tokens.
    #[must_use]
    pub const fn takes_means(self) -> bool {
        matches!(self, Self::Odds | Self::ContrastOfMeans | Self::Means)
    }
}

/// What `transformers` and its trainers choose beside the rest of a recipe.
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
    /// Liger's kernels for gated activations. Its rotation keeps what transformers' own keeps.
    pub liger_gates: bool,
    /// Whether a loss fused with the output layer sums its weight's gradient in fp32 (Liger's `accum_dtype`).
    pub fp32_accumulation: bool,
    /// What wraps the model for data parallelism.
    pub engine: DataEngine,
    /// Number format in which FSDP reduces gradients, where the trainer states one (`MixedPrecision.reduce_dtype`).
    pub reduce: Option<NumberFormat>,
    /// Number format in which FSDP2 hands on what a layer returns, where the trainer states one
    /// (`MixedPrecisionPolicy.output_dtype`). A layer that is computed again keeps its input so: transformers 5.6 checkpoints
    /// around FSDP's hooks (`GradientCheckpointingLayer.__call__`).
    pub output: Option<NumberFormat>,
    /// Whether embedding and output layer are FSDP units of their own, gathered when they run and freed behind it; else they
    /// are of the unit outside of layers, which stays gathered.
    pub ends_apart: bool,
    /// Whether tensor ranks share linear layers, embedding and output layer as NeMo Automodel's plans of PyTorch's DTensor cut them:
    /// each column-parallel layer reduces the gradient of its own input
    /// (`nemo_automodel/components/distributed/optimized_tp_plans.py`).
    pub dtensor_plan: bool,
    /// Whether the embedding is such a unit, and the output layer is not.
    pub embedding_apart: bool,
    /// Whether the square of each token's log of the softmax's sum is added to the loss.
    pub z_loss: bool,
    /// Whether FSDP2 reduces gradients with the last micro-batch of a step alone (`set_requires_gradient_sync`), so that whole
    /// ones are held until then.
    pub defers_reduction: bool,
    /// Sequences of one batch of an evaluation between steps; 0 where none is counted.
    pub evaluation_batch: u64,
    /// What a preference loss does with the logits.
    pub preference_logits: PreferenceLogits,
    /// Whether the optimizer steps each parameter as soon as backward has its gradient, which is gone then.
    pub steps_in_backward: bool,
    /// Whether Adam steps over all tensors at once, with the roots of their second moments beside them.
    pub foreach_step: bool,
    /// Elements of all of DeepSpeed's buffers of gradients to be reduced; none under another engine.
    pub reduce_buckets: Option<u64>,
    /// Whether layers that are recomputed whole are compiled with their checkpoint: backward works them out again part by part.
    pub compiled_checkpoints: bool,
    /// Whether layers that are recomputed whole are by `torch.utils.checkpoint`'s reentrant kind, which runs them again as a graph of
    /// their own and has no hooks of what they save.
    pub reentrant_checkpoints: bool,
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
            engine: DataEngine::Ddp,
            reduce: None,
            output: None,
            ends_apart: false,
            dtensor_plan: false,
            embedding_apart: false,
            z_loss: false,
            defers_reduction: false,
            evaluation_batch: 0,
            preference_logits: PreferenceLogits::Dropped,
            steps_in_backward: false,
            compiled_checkpoints: false,
            reentrant_checkpoints: false,
        }
    }
}
