//! Settings that change no figure.

use super::field::Field;

impl Field {
    /// Whether it changes no figure, or only through another setting that is asked for.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        matches!(
            self,
            Self::TokenizerModel
                | Self::TokenizerType
                | Self::VocabFile
                | Self::VocabSize
                | Self::TrainIters
                | Self::TrainSamples
                | Self::RotaryBase
                | Self::LoraAlpha
                | Self::RolloutPrompts
                | Self::RolloutSteps
                | Self::MaxPromptLength
                | Self::MaxResponseLength
                | Self::MaxContextLength
                | Self::WindowSize
                | Self::ApplyLayernorm1p
                | Self::CalculatePerTokenLoss
                | Self::UseCheckpointArgs
        )
    }
}
