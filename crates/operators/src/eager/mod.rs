//! What modules of plain PyTorch keep for backward, as Hugging Face transformers writes them and PEFT adapts them:
//! each operation by itself, so that what is kept follows from which tensors require a gradient. Recorded runs of
//! the packages are met to the byte (`tests/data/activations/huggingface.jsonl`).
//!
//! A tensor is kept where the operation that reads it needs it for a gradient that somebody asks for: the input of a
//! linear layer for its weight's gradient, its weight (a parameter, not counted) for its input's.

mod attention;
mod ends;
mod experts;
mod flow;
mod held;
mod linear;
mod mlp;
mod norm;
mod tape;

pub(super) use held::{chunk_rows, held};

use super::{Operator, Saved, Symbols};

/// What `operator` keeps where the software runs such modules; none where it runs others.
pub(super) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    if !x.recipe().software.semantics().eager_modules {
        return None;
    }
    let mut tape = tape::Tape::new(x);
    match operator {
        Operator::Embedding => ends::embedding(&mut tape),
        Operator::InputNorm => norm::input(&mut tape),
        Operator::SelfAttention => attention::attention(&mut tape),
        Operator::PreMlpNorm => norm::pre_mlp(&mut tape),
        Operator::Mlp => mlp::mlp(&mut tape),
        Operator::Experts => experts::experts(&mut tape),
        Operator::FinalNorm => norm::last(&mut tape),
        Operator::OutputLayer => ends::output_layer(&mut tape),
        // No module of transformers is modelled for these: as in Megatron.
        Operator::LatentAttention | Operator::MtpProjection => return None,
    }
    Some(tape.saved)
}
