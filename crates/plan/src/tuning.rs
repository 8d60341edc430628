//! What is trained and what is frozen, and what trainers built on plain PyTorch modules add to a recipe.

use super::adapters::AdapterLibrary;
use super::number::NumberFormat;
use super::quantization::{Quantization, WholeLinears};

/// Which parameters train.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// What trains of the weights that the model came with.
    pub base: BaseTraining,
    /// Low-rank adapters beside linear layers.
    pub lora: Option<Lora>,
    /// Whether the word embedding trains.
    pub embedding: bool,
    /// Whether the output layer trains; a tied one trains with the embedding.
    pub head: bool,
    /// Whether embedding and output layer are trained copies beside frozen originals (PEFT `modules_to_save`).
    pub copies: bool,
    /// Whether the embedding's output is made to require a gradient (`enable_input_require_grads`).
    pub input_gradients: bool,
    /// Whether what projects images onto the decoder's width trains, whose output is part of the first layer's input.
    pub projector: bool,
    /// Whether what comes out of a vision tower requires a gradient: it trains, or gradients pass it.
    pub images: bool,
    /// How frozen linear weights are held.
    pub quantization: Quantization,
    /// Linear layers that are not quantized with the others.
    pub whole: WholeLinears,
    /// Whether frozen weights that are not quantized are held in fp32 (PEFT `prepare_model_for_kbit_training`).
    pub upcast: bool,
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
            whole: WholeLinears::default(),
            upcast: false,
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

    /// Of `layers` layers how many from the first on hold nothing that trains.
    #[must_use]
    pub fn frozen_layers(&self, layers: u64) -> u64 {
        match self.base {
            BaseTraining::All => 0,
            // Gradients go through all of them to what trains before.
            BaseTraining::Last(_) | BaseTraining::None if self.lora.is_some() || self.projector => 0,
            BaseTraining::Last(last) => layers.saturating_sub(last),
            BaseTraining::None => layers,
        }
    }

    /// Whether the input of the first layer that trains requires a gradient.
    #[must_use]
    pub fn reaches_input(&self) -> bool {
        self.input_gradients || self.embedding || self.projector || self.images
    }
}

/// What trains of the weights that the model came with, embedding and output layer aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseTraining {
    /// All of them.
    All,
    /// The last so many layers and the final norm.
    Last(u64),
    /// None.
    None,
}

/// Low-rank adaptation (Hu et al. 2021; PEFT `LoraConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lora {
    /// Rank r: the inner width of both matrices.
    pub rank: u64,
    /// `lora_dropout` above 0.
    pub dropout: bool,
    /// Whether the length of each row of the weight is trained apart from its direction (DoRA, Liu et al. 2024).
    pub dora: bool,
    /// Number format of the adapters; PEFT holds them in fp32 over 16-bit weights unless told otherwise
    /// (`autocast_adapter_dtype`).
    pub dtype: NumberFormat,
    /// Which linear layers have one.
    pub modules: LoraModules,
    /// Whose adapters they are.
    pub library: AdapterLibrary,
    /// Which projections with adapters are one function each.
    pub kernels: AdapterKernels,
}

/// Projections with adapters that are one autograd function each, with a backward pass written by hand, in the place of PEFT's
/// modules (axolotl's `lora_qkv_kernel`, `lora_o_kernel`, `lora_mlp_kernel`; `axolotl/kernels/lora.py`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterKernels {
    /// Queries, keys and values.
    pub queries: bool,
    /// The attention's output projection.
    pub output: bool,
    /// The MLP, where it is gated.
    pub mlp: bool,
    /// Every projection by itself: it makes the product with A once more for its backward (NeMo Automodel's memory-efficient
    /// LoRA, `components/_peft/lora.py:LoRATritonFunction`).
    pub each: bool,
}

impl AdapterKernels {
    /// Those that these words name: `qkv`, `o`, `mlp`, `each`. None where one is another.
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

    /// Whether any projection has one.
    #[must_use]
    pub const fn any(self) -> bool {
        self.queries || self.output || self.mlp || self.each
    }
}

/// A linear layer of a transformer, as LoRA's target modules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearModule {
    /// `q_proj`; also a fused projection that holds it.
    Query,
    /// `k_proj`.
    Key,
    /// `v_proj`.
    Value,
    /// `o_proj`, `dense`.
    Output,
    /// `gate_proj`; also a projection that holds it.
    Gate,
    /// `up_proj`; also the first projection of an MLP without a gate.
    Up,
    /// `down_proj`.
    Down,
    /// Weights of experts, which PEFT adapts as parameters. Elsewhere experts are linear layers like others.
    Experts,
    /// `lm_head`, which `all-linear` leaves out.
    OutputLayer,
    /// `in_proj` and `out_proj` of a linear mixer.
    Mixer,
    /// `q_a_proj` of multi-latent attention.
    QueryDown,
    /// `q_b_proj`.
    QueryUp,
    /// `kv_a_proj_with_mqa`.
    KeyValueDown,
    /// `kv_b_proj`.
    KeyValueUp,
    /// The router, a parameter like the experts.
    Router,
}

/// Linear layers of an MLP with a gate.
const OF_MLP: [LinearModule; 3] = [LinearModule::Gate, LinearModule::Up, LinearModule::Down];

/// A set of linear layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoraModules(u16);

impl LoraModules {
    /// Every linear layer of the layers, experts included (`all-linear`).
    pub const ALL: Self = Self(0x7eff);

    /// The same with `module`.
    #[must_use]
    pub const fn with(self, module: LinearModule) -> Self {
        Self(self.0 | 1 << module as u16)
    }

    /// The same without `module`.
    #[must_use]
    pub const fn without(self, module: LinearModule) -> Self {
        Self(self.0 & !(1 << module as u16))
    }

    /// The same without the linear layers of an MLP.
    #[must_use]
    pub fn without_mlp(self) -> Self {
        OF_MLP.into_iter().fold(self, Self::without)
    }

    /// Whether `module` is in it.
    #[must_use]
    pub const fn has(self, module: LinearModule) -> bool {
        self.0 & (1 << module as u16) != 0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether linear layers of an MLP are in it, and with them those of experts under Megatron core.
    #[must_use]
    pub fn reach_experts(self) -> bool {
        OF_MLP.into_iter().any(|module| self.has(module))
    }

    /// Whether all linear layers of an MLP are.
    #[must_use]
    pub fn cover_experts(self) -> bool {
        OF_MLP.into_iter().all(|module| self.has(module))
    }

    /// With what the names of target modules say; none where a name is not known.
    #[must_use]
    pub fn named(self, name: &str) -> Option<Self> {
        use LinearModule::{Down, Gate, Key, Output, Query, Up, Value};
        // A pattern or a path ends in the module's own name.
        let name = name.rsplit(['.', '/']).next().unwrap_or(name).trim_start_matches("mlp_");
        let modules: &[LinearModule] = match name {
            "all-linear" | "all" => return Some(Self::ALL),
            "q_proj" | "linear_q" | "wq" | "to_q" | "query" | "q" => &[Query],
            "k_proj" | "linear_k" | "wk" | "to_k" | "key" | "k" => &[Key],
            "v_proj" | "linear_v" | "wv" | "to_v" | "value" | "v" => &[Value],
            "qkv_proj" | "query_key_value" | "c_attn" | "Wqkv" | "linear_qkv" | "qkv" | "W_pack" => {
                &[Query, Key, Value]
            }
            "o_proj" | "output_proj" | "wo" | "dense" | "out_proj" | "linear_proj" | "o" | "attn_output" => {
                &[Output]
            }
            "gate_proj" | "linear_fc1_gate" | "w1" | "gate" => &[Gate],
            "up_proj" | "linear_fc1_up" | "w3" | "up" => &[Up],
            "gate_up_proj" | "dense_h_to_4h" | "linear_fc1" | "fc1" | "c_fc" | "fc_in" => &[Gate, Up],
            "down_proj" | "w2" | "dense_4h_to_h" | "linear_fc2" | "fc2" | "fc_out" | "down" => &[Down],
            "in_proj" => &[LinearModule::Mixer],
            "q_a_proj" => &[LinearModule::QueryDown],
            "q_b_proj" => &[LinearModule::QueryUp],
            "kv_a_proj_with_mqa" => &[LinearModule::KeyValueDown],
            "kv_b_proj" => &[LinearModule::KeyValueUp],
            // GPT-2 names the last projections of attention and MLP alike.
            "c_proj" => &[Output, Down],
            "lm_head" | "output" => &[LinearModule::OutputLayer],
            "q_attn" => &[], // Of attention across two sequences; PEFT takes a name that nothing has.
            _ => return None,
        };
        Some(modules.iter().fold(self, |all, module| all.with(*module)))
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
    /// Kahneman-Tversky optimisation: single samples, good or bad, and a reference. A pass without gradients over other samples
    /// estimates the distance to it.
    Kto {
        /// Where the reference's log-probabilities come from.
        reference: Reference,
    },
    /// Which of two sequences is the better one, by a reward for each: a head of one output in the place of the output layer.
    Rewards,
    /// Which of some classes a sequence is of: a head of so many outputs in the place of the output layer.
    Classes {
        /// Outputs of the head.
        labels: u64,
    },
    /// A policy loss of reinforcement learning (PPO, GRPO and their kin): log-probabilities of the sampled tokens. Its
    /// reference and critic are with the rollouts ([`crate::Rollout`]).
    Policy,
}

impl Objective {
    /// Sequences in the batch for one sample: a preference has two.
    #[must_use]
    pub const fn sequences(self) -> u64 {
        match self {
            Self::NextToken | Self::Policy | Self::Kto { .. } | Self::Classes { .. } => 1,
            Self::Dpo { .. } | Self::Rewards => 2,
        }
    }

    /// Forward passes over a micro-batch beside the one that is trained: the reference's, and with KTO those of policy and
    /// reference over the samples that estimate their distance. Log-probabilities worked out before the training need none.
    #[must_use]
    pub const fn passes_beside(self) -> u64 {
        match self {
            Self::NextToken | Self::Policy | Self::Rewards | Self::Classes { .. } => 0,
            Self::Dpo { reference: Reference::Precomputed } => 0,
            Self::Dpo { .. } => 1,
            Self::Kto { reference: Reference::Precomputed } => 1,
            Self::Kto { .. } => 3,
        }
    }

    /// Where a preference loss has its reference from; none for other losses.
    #[must_use]
    pub const fn reference(self) -> Option<Reference> {
        match self {
            Self::NextToken | Self::Policy | Self::Rewards | Self::Classes { .. } => None,
            Self::Dpo { reference } | Self::Kto { reference } => Some(reference),
        }
    }

    /// Outputs of a head in the place of the output layer; none where that is there.
    #[must_use]
    pub const fn labels(self) -> Option<u64> {
        match self {
            Self::Rewards => Some(1),
            Self::Classes { labels } => Some(labels),
            _ => None,
        }
    }
}

/// Where a preference loss has its reference from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reference {
    /// The same weights without their adapters: nothing more is held.
    #[default]
    Adapters,
    /// A second copy of the weights on the device.
    Loaded,
    /// Log-probabilities worked out before training.
    Precomputed,
}

/// How `transformers` computes the experts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpertKernel {
    /// `grouped_mm`, the default.
    #[default]
    Grouped,
    /// `batched_mm`: a copy of an expert's weights for each token that goes to it.
    Batched,
    /// A loop over experts.
    Loop,
}

/// What wraps the model for data parallelism.
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
