//! Which setting holds which words, by type.

use super::setting::SettingValue;
use super::{
    AdapterLibrary, Field, Fp8Recipe, LinearKind, NumberFormat, PipelineSchedule, ProjectedSide, RlFramework,
    RolloutEngine, Software, word,
};

/// A value of a setting that holds one or several of some words.
pub trait Word: Copy + PartialEq + 'static {
    /// The setting.
    const FIELD: Field;

    /// The word of the value.
    fn word(self) -> &'static str;

    /// The value of a word; `None` for any other.
    fn from_word(word: &str) -> Option<Self>;

    /// The value as settings hold it.
    fn value(self) -> SettingValue {
        SettingValue::Text(self.word().to_owned())
    }
}

macro_rules! held_by {
    ($($words:ty: $field:ident,)*) => {$(
        impl Word for $words {
            const FIELD: Field = Field::$field;

            fn word(self) -> &'static str {
                self.word_of()
            }

            fn from_word(word: &str) -> Option<Self> {
                Self::of_word(word)
            }
        }
    )*};
}

held_by! {
    word::Normalization: Normalization,
    word::PositionEmbeddingType: PositionEmbeddingType,
    word::SoftmaxType: SoftmaxType,
    word::VisionLiger: VisionLiger,
    word::VisionModules: VisionModules,
    word::VisionUnits: VisionUnits,
    word::DeviceMap: DeviceMap,
    word::TransformerImpl: TransformerImpl,
    word::Fp8: Fp8,
    word::Fp4: Fp4,
    word::Optimizer: Optimizer,
    word::DataParallelShardingStrategy: DataParallelShardingStrategy,
    word::DataParallelEngine: DataParallelEngine,
    word::TrainType: TrainType,
    word::BaseQuantization: BaseQuantization,
    word::TrainingObjective: TrainingObjective,
    word::PreferenceLogits: PreferenceLogits,
    word::ReferenceModel: ReferenceModel,
    word::Autocast: Autocast,
    word::AttnImplementation: AttnImplementation,
    word::ExpertsImplementation: ExpertsImplementation,
    word::LossKind: LossKind,
    word::RecomputeGranularity: RecomputeGranularity,
    word::RecomputeMethod: RecomputeMethod,
    word::AttentionKernel: AttentionKernel,
    word::AttentionBackend: AttentionBackend,
    word::CrossEntropyFusionImpl: CrossEntropyFusionImpl,
    word::CudaGraphImpl: CudaGraphImpl,
    word::MoeTokenDispatcherType: MoeTokenDispatcherType,
    word::MoeFlexDispatcherBackend: MoeFlexDispatcherBackend,
    word::RouterLoss: RouterLoss,
    word::MoeRouterDtype: MoeRouterDtype,
    word::ModuleVariant: ModuleVariants,
    word::KernelVariant: KernelVariants,
    AdapterLibrary: AdapterLibrary,
    ProjectedSide: OptimProjection,
    RlFramework: RlFramework,
    RolloutEngine: RolloutEngine,
}

/// The same for types that list their names themselves.
macro_rules! named {
    ($($words:ty: $field:ident, $all:expr;)*) => {$(
        impl Word for $words {
            const FIELD: Field = Field::$field;

            fn word(self) -> &'static str {
                self.name()
            }

            fn from_word(word: &str) -> Option<Self> {
                $all.find(|value| value.name() == word)
            }
        }
    )*};
}

named! {
    Fp8Recipe: Fp8Recipe, Self::NAMED.into_iter().map(|(recipe, _)| recipe);
    LinearKind: LinearMixer, Self::ALL.into_iter();
    PipelineSchedule: PipelineSchedule, Self::all();
    Software: Software, Self::ALL.into_iter();
}

impl NumberFormat {
    /// It as settings hold it.
    #[must_use]
    pub fn value(self) -> SettingValue {
        SettingValue::Text(self.name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueKind;

    fn check<W: Word + std::fmt::Debug>() {
        let ValueKind::Word(words) = W::FIELD.kind() else { panic!("{} holds no word", W::FIELD.name()) };
        for word in words {
            let value = W::from_word(word).unwrap_or_else(|| panic!("{} {word}", W::FIELD.name()));
            assert_eq!(value.word(), *word);
        }
        assert_eq!(W::from_word(""), None);
    }

    #[test]
    fn every_word_of_a_setting_is_a_value_of_its_type() {
        check::<Software>();
        check::<PipelineSchedule>();
        check::<LinearKind>();
        check::<Fp8Recipe>();
        check::<RlFramework>();
        check::<word::TrainType>();
        check::<word::Optimizer>();
    }
}
