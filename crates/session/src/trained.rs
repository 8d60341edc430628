//! Which weights train, as a question states it.

use serde::{Deserialize, Serialize};

use super::start::Objective;

/// Weights that train, as a question states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trained {
    /// Everything.
    Full,
    /// LoRA's adapters.
    Lora,
    /// Adapters over 4-bit weights.
    QLora,
}

impl Trained {
    /// Every choice, in the order of the list.
    pub const ALL: [Self; 3] = [Self::Full, Self::Lora, Self::QLora];

    /// Label in the list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "all weights",
            Self::Lora => "LoRA",
            Self::QLora => "QLoRA",
        }
    }

    /// Value of the setting `train_type`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Lora => "lora",
            Self::QLora => "qlora",
        }
    }

    /// Objective that a plan proposed for a catalog model starts from.
    #[must_use]
    pub const fn objective(self) -> Objective {
        match self {
            Self::Full => Objective::FullFineTune,
            Self::Lora => Objective::Lora,
            Self::QLora => Objective::QLora,
        }
    }
}
