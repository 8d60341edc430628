//! What a plan is started from.

/// A model and the machines for it, as picked in the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// A model of the catalog by any of its names, or the text of its `config.json`.
    pub model: String,
    /// What is trained.
    pub objective: Objective,
    /// An accelerator of the catalog.
    pub accelerator: String,
    /// Total number of accelerators, with the usual number per node.
    pub gpus: u64,
    /// Sequence length, in tokens; no more than the model has positions for.
    pub sequence: u64,
}

/// Training objective: which weights train, and by which method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Everything, from the start, by Megatron-LM.
    #[default]
    PreTrain,
    /// Everything, on examples, by the Trainer of transformers.
    FullFineTune,
    /// Low-rank adapters over frozen weights.
    Lora,
    /// The same over 4-bit weights.
    QLora,
    /// Adapters by direct preference optimisation.
    Dpo,
    /// The policy by GRPO with verl, whose rollouts share its accelerators.
    Rl,
}

impl Objective {
    /// Every objective, in the order they are offered.
    pub const ALL: [Self; 6] =
        [Self::PreTrain, Self::FullFineTune, Self::Lora, Self::QLora, Self::Dpo, Self::Rl];

    /// Name, as the form and the terminal show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreTrain => "Pre-train",
            Self::FullFineTune => "Full fine-tune",
            Self::Lora => "LoRA",
            Self::QLora => "QLoRA",
            Self::Dpo => "DPO, LoRA",
            Self::Rl => "RL (GRPO)",
        }
    }
}
