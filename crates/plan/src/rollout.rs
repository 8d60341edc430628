//! How rollouts are made for reinforcement learning, and what then shares the accelerators with the training.

use super::number::NumberFormat;
use super::rl_framework::RlFramework;

/// Rollouts of a training by reinforcement learning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rollout {
    /// Which framework runs training and rollouts in turn.
    pub framework: RlFramework,
    /// Which engine generates.
    pub engine: RolloutEngine,
    /// Tensor parallel size of the engine.
    pub tensor: u64,
    /// Part of an accelerator's memory that the engine is given (vLLM `gpu_memory_utilization`, SGLang
    /// `mem_fraction_static`), 0 to 1.
    pub fraction: f64,
    /// Accelerators that only generate, 0 where they are not described; none where rollouts run on those of the training.
    pub own_gpus: Option<u64>,
    /// Whether the engine gives back weights and cache while the model trains.
    pub sleeps: bool,
    /// Whether decoding runs from CUDA graphs.
    pub graphs: bool,
    /// Sequences that the engine decodes at once at most; of the training model itself, those of one accelerator.
    pub sequences: u64,
    /// Number format of the engine's weights.
    pub weights: NumberFormat,
    /// What the trainer moves to the host while the engine generates.
    pub offloads: Offloads,
    /// The model that the policy is held against.
    pub reference: Residence,
    /// The critic, of the policy's own shape.
    pub critic: Residence,
    /// Whether the critic's layers are computed again where the policy's are.
    pub critic_recomputes: bool,
    /// The critic's micro-batch where it is not the policy's: sequences, or tokens where samples are packed by tokens.
    pub critic_batch: Option<u64>,
    /// Rollouts of one prompt, n.
    pub per_prompt: u64,
    /// Longest prompt and response together. Unit: token.
    pub length: u64,
    /// Bytes that sampling holds of each logit of the next token beside the logits and their copy, of the training model itself.
    pub sampling: u64,
    /// Longest response, 0 where it is not known. Unit: token.
    pub response: u64,
    /// Whether the policy's loss has the entropy of the logits in it, compiled (verl's `entropy_coeff`).
    pub entropy: bool,
    /// Whether all weights are gathered and copied at once to be handed to engines elsewhere (open-instruct's
    /// `gather_whole_model`).
    pub copies_all: bool,
}

impl Rollout {
    /// Whether rollouts run on the accelerators of the training.
    #[must_use]
    pub const fn is_co_located(&self) -> bool {
        self.own_gpus.is_none()
    }
}

/// What the trainer moves to the host between its phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Weights of the policy.
    pub weights: bool,
    /// Gradients, or the buffers that hold them.
    pub gradients: bool,
    /// States of the optimizer.
    pub optimizer: bool,
}

/// Where a model beside the policy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residence {
    /// There is none.
    #[default]
    Absent,
    /// On the accelerators of the policy, cut as it is.
    Device,
    /// On the host, or brought to the accelerators only while it is used.
    Host,
    /// On accelerators of its own.
    Elsewhere,
}

impl Residence {
    /// The words of the settings, in the order of the variants.
    pub const NAMED: [(Self, &'static str); 4] = [
        (Self::Absent, "none"),
        (Self::Device, "device"),
        (Self::Host, "host"),
        (Self::Elsewhere, "elsewhere"),
    ];

    /// The residence of a word; none where the word is another.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
    }
}

/// Which engine generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutEngine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// The model that trains, by transformers' `generate`.
    Transformers,
}

impl RolloutEngine {
    /// The engine of a word; none where the word is another.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "vllm" => Some(Self::Vllm),
            "sglang" => Some(Self::Sglang),
            "transformers" => Some(Self::Transformers),
            _ => None,
        }
    }

    /// The engine's own name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Transformers => "transformers",
        }
    }
}
