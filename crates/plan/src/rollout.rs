//! How rollouts are generated for reinforcement learning, and what shares the accelerators with the training.

use super::number::NumberFormat;
use super::rl_framework::RlFramework;

/// Rollouts in reinforcement-learning training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rollout {
    /// Which framework alternates training and rollouts.
    pub framework: RlFramework,
    /// Which engine generates.
    pub engine: RolloutEngine,
    /// Tensor parallel size of the engine.
    pub tensor: u64,
    /// Fraction of an accelerator's memory given to the engine (vLLM `gpu_memory_utilization`, SGLang
    /// `mem_fraction_static`), 0 to 1.
    pub fraction: f64,
    /// Accelerators dedicated to generation, 0 if they are not described; `None` if rollouts run on the training
    /// accelerators.
    pub own_gpus: Option<u64>,
    /// Whether the engine releases weights and KV cache while the model trains.
    pub sleeps: bool,
    /// Whether decoding uses CUDA graphs.
    pub graphs: bool,
    /// Maximum number of sequences that the engine decodes concurrently; if the training model itself generates,
    /// those of one accelerator.
    pub sequences: u64,
    /// Number format of the engine's weights.
    pub weights: NumberFormat,
    /// What the trainer moves to the host while the engine generates.
    pub offloads: Offloads,
    /// Where the reference model lives.
    pub reference: Residence,
    /// Where a critic of the policy's own shape lives.
    pub critic: Residence,
    /// Whether the critic's layers are recomputed if the policy's are.
    pub critic_recomputes: bool,
    /// The critic's micro-batch, if it differs from the policy's: sequences, or tokens if samples are packed by
    /// tokens.
    pub critic_batch: Option<u64>,
    /// Rollouts per prompt, n.
    pub per_prompt: u64,
    /// Maximum length of prompt and response together. Unit: token.
    pub length: u64,
    /// Bytes per logit of the next token that sampling holds in addition to the logits and their copy, when the
    /// training model itself generates.
    pub sampling: u64,
    /// Longest response, 0 if unknown. Unit: token.
    pub response: u64,
    /// Whether the policy's loss has the entropy of the logits in it (verl's `entropy_coeff`), compiled where samples are joined.
    pub entropy: bool,
    /// Whether all weights are gathered and copied at once for transfer to engines on other accelerators
    /// (open-instruct's `gather_whole_model`).
    pub copies_all: bool,
}

impl Rollout {
    /// Whether rollouts run on the training accelerators.
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
    /// Optimizer states.
    pub optimizer: bool,
}

/// Where an additional model (reference, critic, reward) lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residence {
    /// There is none.
    #[default]
    Absent,
    /// On the accelerators of the policy, sharded in the same way.
    Device,
    /// On the host, or moved to the accelerators only while in use.
    Host,
    /// On its own accelerators.
    Elsewhere,
    /// In an inference engine on the policy's accelerators, which sleeps while others work.
    Engine,
}

impl Residence {
    /// The words of the settings, in the order of the variants.
    pub const NAMED: [(Self, &'static str); 5] = [
        (Self::Absent, "none"),
        (Self::Device, "device"),
        (Self::Host, "host"),
        (Self::Elsewhere, "elsewhere"),
        (Self::Engine, "engine"),
    ];

    /// The residence with this name; `None` for any other word.
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
    /// The training model itself, through transformers' `generate`.
    Transformers,
}

impl RolloutEngine {
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
