//! What each operator saves.

use super::tape::{Step, Tape};
use super::{attention, ends, experts, latent, layer_inputs, linear_mixer, mlp, norm, paired, router_loss};
use crate::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::RecomputeModule;

const MODULES: &str =
    "nemo_automodel/components/distributed/activation_checkpointing.py:apply_submodule_checkpointing";

static STREAM: Formula = Formula::new("S·h·B", "The checkpointed norm's input.", MODULES);
static NORMED: Formula = Formula::new("n·h·B", "The checkpointed module's input.", MODULES);

/// What `operator` saves if the software runs such modules; `None` if it runs others.
pub(crate) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    Some(by_step(operator, x)?.into_iter().map(|(_, saved)| saved).collect())
}

/// What is held of an individually checkpointed module: its input. Cosines and sines are shared by all layers.
fn input_alone(operator: Operator, x: &Symbols<'_>) -> Option<Saved> {
    let again = |module| x.recomputes(module);
    let (name, tokens, formula) = match operator {
        Operator::InputNorm if again(RecomputeModule::LayerNorm) => ("layer input", x.s_local, &STREAM),
        Operator::PreMlpNorm if again(RecomputeModule::LayerNorm) => ("residual stream", x.s_local, &STREAM),
        Operator::SelfAttention | Operator::WindowedAttention if again(RecomputeModule::Attention) => {
            ("attention input", x.n, &NORMED)
        }
        Operator::Mlp if again(RecomputeModule::Mlp) => ("MLP input", x.n, &NORMED),
        _ => return None,
    };
    Some(Saved::new(name, &[tokens, x.h], x.width, formula))
}

/// The same, each with the step of the operator that saves it.
pub(super) fn by_step(operator: Operator, x: &Symbols<'_>) -> Option<Vec<(Step, Saved)>> {
    if !x.recipe().software.semantics().eager_modules {
        return None;
    }
    if let Some(input) = input_alone(operator, x) {
        return Some(vec![(Step::First, input)]);
    }
    let x = &x.of(operator);
    let mut tape = Tape::new(x);
    match operator {
        Operator::Embedding => ends::embedding(&mut tape),
        Operator::InputNorm => norm::input(&mut tape),
        Operator::SelfAttention if x.model().encoder.is_some() => paired::attention(&mut tape),
        Operator::Positions => paired::shared(&mut tape),
        Operator::SelfAttention
        | Operator::WindowedAttention
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention => attention::attention(&mut tape),
        Operator::PreMlpNorm => norm::pre_mlp(&mut tape, false),
        Operator::PreExpertsNorm => {
            norm::pre_mlp(&mut tape, x.model().arrangement.dense_beside_experts);
        }
        Operator::Mlp | Operator::WideMlp => mlp::mlp(&mut tape),
        Operator::LayerInputs => layer_inputs::made(&mut tape),
        Operator::LayerInput => layer_inputs::added(&mut tape),
        Operator::Experts => experts::experts(&mut tape),
        Operator::FinalNorm => {
            norm::last(&mut tape);
            paired::behind_last_norm(&mut tape);
        }
        Operator::OutputLayer => {
            ends::output_layer(&mut tape);
            router_loss::kept(&mut tape);
        }
        // No transformers module is modelled for these, so as in Megatron.
        Operator::Linear(kind) => {
            if !linear_mixer::mixer(&mut tape, kind) {
                return None;
            }
        }
        Operator::LatentAttention => latent::attention(&mut tape),
        Operator::MtpProjection
        | Operator::Projector
        | Operator::VisionLayer
        | Operator::VisionEnds
        | Operator::Encoder { .. }
        | Operator::CrossNorm
        | Operator::CrossAttention => return None,
    }
    Some(tape.saved)
}
