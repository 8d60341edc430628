//! What is trained and what is frozen, and what trainers built on plain PyTorch modules add to a recipe.

use super::adapters::AdapterLibrary;
use super::linear_modules::{LinearModule, LoraModules};
use super::number::NumberFormat;
use super::quantization::{Quantization, UnquantizedLinears};

/// Which parameters train.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Which of the model's original weights train.
    pub base: BaseTraining,
    /// Low-rank adapters on linear layers.
    pub lora: Option<Lora>,
    /// Whether the word embedding trains.
    pub embedding: bool,
    /// Whether the output layer trains; a tied one trains with the embedding.
    pub head: bool,
    /// Whether embedding and output layer are trained copies, kept along with their frozen originals (PEFT
    /// `modules_to_save`).
    pub copies: bool,
    /// Whether the embedding's output is made to require a gradient (`enable_input_require_grads`).
    pub input_gradients: bool,
    /// Whether the projector of images onto the decoder's width trains; its output is part of the first layer's
    /// input.
    pub projector: bool,
    /// Whether a vision tower's output requires a gradient, because the tower trains or gradients flow through it.
    pub images: bool,
    /// How frozen linear weights are stored.
    pub quantization: Quantization,
    /// Linear layers that are not quantized along with the others.
    pub unquantized: UnquantizedLinears,
    /// Whether frozen weights that are not quantized are stored in fp32 (PEFT `prepare_model_for_kbit_training`).
    pub upcast: bool,
    /// Whether embeddings and output layer are then cast back to 16 bits, so that norms alone are in fp32 (TRL
    /// `peft_module_casting_to_bf16`).
    pub narrow_ends: bool,
    /// What the loss is computed from.
    pub objective: Objective,
}

impl Default for Tuning {
    /// Everything trains.
    fn default() -> Self {
        Self {
            base: BaseTraining::All,
            lora: None,
            embedding: true,
            head: true,
            copies: false,
            input_gradients: false,
            projector: false,
            images: false,
            quantization: Quantization::None,
            unquantized: UnquantizedLinears::default(),
            upcast: false,
            narrow_ends: false,
            objective: Objective::NextToken,
        }
    }
}

impl Tuning {
    /// Whether nothing of the model is frozen or added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.base == BaseTraining::All && self.lora.is_none() && self.embedding && self.head
    }

    /// How many of `layers` layers, counted from the first, hold nothing that trains.
    #[must_use]
    pub fn frozen_layers(&self, layers: u64) -> u64 {
        match self.base {
            BaseTraining::All => 0,
            // Gradients flow through all of them to whatever trains before them.
            BaseTraining::Last(_) | BaseTraining::None
                if self.lora.is_some() || self.projector || self.images =>
            {
                0
            }
            BaseTraining::Last(last) => layers.saturating_sub(last),
            BaseTraining::None => layers,
        }
    }

    /// Whether the input of the first layer that trains requires a gradient.
    #[must_use]
    pub fn reaches_input(&self) -> bool {
        let adapted = self.lora.is_some_and(|lora| lora.modules.has(LinearModule::Embedding));
        self.input_gradients || self.embedding || adapted || self.projector || self.images
    }
}

/// Which of the model's original weights train, apart from embedding and output layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseTraining {
    /// All of them.
    All,
    /// This many last layers and the final norm.
    Last(u64),
    /// None.
    None,
}

/// Low-rank adaptation (Hu et al. 2021; PEFT `LoraConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lora {
    /// Rank r: the inner width of both matrices.
    pub rank: u64,
    /// `lora_dropout` above 0, of the adapter's input.
    pub dropout: bool,
    /// The same of the adapter's result (NeMo Automodel's `dropout_position`).
    pub drops_result: bool,
    /// Whether the magnitude of each weight row is trained separately from its direction (DoRA, Liu et al. 2024).
    pub dora: bool,
    /// Number format of the adapters; PEFT holds them in fp32 over 16-bit weights unless configured otherwise
    /// (`autocast_adapter_dtype`).
    pub dtype: NumberFormat,
    /// Which linear layers have adapters.
    pub modules: LoraModules,
    /// Whose adapters they are.
    pub library: AdapterLibrary,
    /// Which projections with adapters are fused into one function each.
    pub kernels: AdapterKernels,
}

/// Projections with adapters that are fused into one autograd function each, with a hand-written backward pass,
/// replacing PEFT's modules (axolotl's `lora_qkv_kernel`, `lora_o_kernel`, `lora_mlp_kernel`;
/// `axolotl/kernels/lora.py`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterKernels {
    /// Queries, keys and values.
    pub queries: bool,
    /// The attention's output projection.
    pub output: bool,
    /// The MLP, if it is gated.
    pub mlp: bool,
    /// Every projection by itself: it recomputes the product with A for its backward (NeMo Automodel's
    /// memory-efficient LoRA, `components/_peft/lora.py:LoRATritonFunction`).
    pub each: bool,
}

impl AdapterKernels {
    /// Those that these words name: `qkv`, `o`, `mlp`, `each`. `None` if any word is unknown.
    #[must_use]
    pub fn named(words: &[&str]) -> Option<Self> {
        let mut kernels = Self::default();
        for word in words {
            match *word {
                "qkv" => kernels.queries = true,
                "o" => kernels.output = true,
                "mlp" => kernels.mlp = true,
                "each" => kernels.each = true,
                _ => return None,
            }
        }
        Some(kernels)
    }

    /// Whether any projection has a kernel.
    #[must_use]
    pub const fn any(self) -> bool {
        self.queries || self.output || self.mlp || self.each
    }
}

/// What the loss is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// The cross entropy of the next token.
    #[default]
    NextToken,
    /// Direct preference optimisation: chosen and rejected sequences in one batch, and a reference.
    Dpo {
        /// Where the reference's log-probabilities come from.
        reference: Reference,
    },
    /// Kahneman-Tversky optimisation: individual samples labelled good or bad, and a reference. A pass without
    /// gradients over other samples estimates the distance to it.
    Kto {
        /// Where the reference's log-probabilities come from.
        reference: Reference,
    },
    /// Which of two sequences is better, by a reward for each: a scalar head in place of the output layer.
    Rewards {
        /// How the reward of a sequence is taken from the head's outputs.
        taken: Taken,
    },
    /// Classification of sequences: a head with this many outputs in place of the output layer.
    Classes {
        /// Outputs of the head.
        labels: u64,
    },
    /// A policy loss of reinforcement learning (PPO, GRPO and similar): log-probabilities of the sampled tokens. Its
    /// reference and critic are with the rollouts ([`crate::Rollout`]).
    Policy,
}

impl Objective {
    /// Sequences per sample in the batch: a preference pair has two.
    #[must_use]
    pub const fn sequences(self) -> u64 {
        match self {
            Self::NextToken | Self::Policy | Self::Kto { .. } | Self::Classes { .. } => 1,
            Self::Dpo { .. } | Self::Rewards { .. } => 2,
        }
    }

    /// Forward passes over a micro-batch in addition to the one that trains: the reference's, and with KTO those of
    /// policy and reference over the samples that estimate their distance. Precomputed log-probabilities need none.
    #[must_use]
    pub const fn passes_beside(self) -> u64 {
        match self {
            Self::NextToken | Self::Policy | Self::Rewards { .. } | Self::Classes { .. } => 0,
            Self::Dpo { reference: Reference::Precomputed } => 0,
            Self::Dpo { .. } => 1,
            Self::Kto { reference: Reference::Precomputed } => 1,
            Self::Kto { .. } => 3,
        }
    }

    /// Where a preference loss gets its reference from; `None` for other losses.
    #[must_use]
    pub const fn reference(self) -> Option<Reference> {
        match self {
            Self::NextToken | Self::Policy | Self::Rewards { .. } | Self::Classes { .. } => None,
            Self::Dpo { reference } | Self::Kto { reference } => Some(reference),
        }
    }

    /// Whether a value head stands beside the output layer.
    #[must_use]
    pub const fn has_value_head(self) -> bool {
        matches!(self, Self::Rewards { taken: Taken::Valued })
    }

    /// Outputs of a head in place of the output layer; `None` if the output layer is present.
    #[must_use]
    pub const fn labels(self) -> Option<u64> {
        match self {
            Self::Rewards { taken: Taken::Valued } => None,
            Self::Rewards { .. } => Some(1),
            Self::Classes { labels } => Some(labels),
            _ => None,
        }
    }
}

/// How the reward of a sequence, that of its last token, is taken from a head's outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Taken {
    /// By the indices of sequences and tokens (transformers' models with a head for classes).
    #[default]
    Indexed,
    /// Gathered from the outputs of all tokens, which are kept (OpenRLHF).
    Gathered,
    /// The same behind packs of sequences, whose outputs are moved back to where the sequences were.
    Unpacked,
    /// Gathered from the outputs of a value head beside the output layer, whose logits nothing reads (LLaMA-Factory, by
    /// TRL's `AutoModelForCausalLMWithValueHead`).
    Valued,
}

/// Where a preference loss gets its reference from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reference {
    /// The same weights without their adapters: no additional memory.
    #[default]
    Adapters,
    /// A second copy of the weights on the device.
    Loaded,
    /// Log-probabilities computed before training.
    Precomputed,
}

/// How `transformers` computes the experts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpertKernel {
    /// `grouped_mm`, the default.
    #[default]
    Grouped,
    /// `batched_mm`: a copy of an expert's weights for each token routed to it.
    Batched,
    /// A loop over experts.
    Loop,
}

/// Which engine wraps the model for data parallelism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataEngine {
    /// `DistributedDataParallel`.
    #[default]
    Ddp,
    /// `FullyShardedDataParallel`.
    Fsdp1,
    /// `fully_shard`.
    Fsdp2,
    /// DeepSpeed's engine.
    DeepSpeed,
}
