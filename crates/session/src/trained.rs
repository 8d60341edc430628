//! Which weights train, as a question states it.

use serde::{Deserialize, Serialize};
use shardscope_plan::Field;

use super::kinds::plan_of;
use super::start::Objective;
use super::user_input::UserInput;

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

    /// The settings by which `input` trains so. Megatron-LM has no adapters of its own: Megatron-Bridge's stand in where its models would
    /// have none.
    #[must_use]
    pub fn settings(self, input: &UserInput) -> Vec<(Field, String)> {
        let alone = vec![(Field::TrainType, self.word().to_owned())];
        let bridge = (Field::AdapterLibrary, "megatron-bridge".to_owned());
        let bridged = [alone.clone(), vec![bridge]].concat();
        let is_plan = |settings: &[(Field, String)]| {
            let mut input = input.clone();
            settings.iter().for_each(|(field, value)| input.put((field.name().to_owned(), value.clone())));
            plan_of(&input).is_ok()
        };
        if self == Self::Full || is_plan(&alone) || !is_plan(&bridged) { alone } else { bridged }
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
