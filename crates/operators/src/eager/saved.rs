//! What each operator keeps.

use super::tape::{Step, Tape};
use super::{attention, ends, experts, latent, linear_mixer, mlp, norm};
use crate::{Operator, Saved, Symbols};

/// What `operator` keeps where the software runs such modules; none where it runs others.
pub(crate) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    Some(by_step(operator, x)?.into_iter().map(|(_, saved)| saved).collect())
}

/// The same, each with the step of the operator that keeps it.
pub(super) fn by_step(operator: Operator, x: &Symbols<'_>) -> Option<Vec<(Step, Saved)>> {
    if !x.recipe().software.semantics().eager_modules {
        return None;
    }
    let windowed = x.windowed();
    let mut tape = Tape::new(if operator == Operator::WindowedAttention { &windowed } else { x });
    match operator {
        Operator::Embedding => ends::embedding(&mut tape),
        Operator::InputNorm => norm::input(&mut tape),
        Operator::SelfAttention | Operator::WindowedAttention => attention::attention(&mut tape),
        Operator::PreMlpNorm | Operator::PreExpertsNorm => norm::pre_mlp(&mut tape),
        Operator::Mlp => mlp::mlp(&mut tape),
        Operator::Experts => experts::experts(&mut tape),
        Operator::FinalNorm => norm::last(&mut tape),
        Operator::OutputLayer => ends::output_layer(&mut tape),
        // No module of transformers is modelled for these: as in Megatron.
        Operator::Linear(kind) => {
            if !linear_mixer::mixer(&mut tape, kind) {
                return None;
            }
        }
        Operator::LatentAttention => latent::attention(&mut tape),
        Operator::MtpProjection | Operator::Projector | Operator::VisionLayer | Operator::VisionEnds => {
            return None;
        }
    }
    Some(tape.saved)
}
