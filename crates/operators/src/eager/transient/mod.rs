//! Transient tensors of plain PyTorch modules, in addition to what forward saves: gradients while a node runs, in its
//! compute dtype, the weight gradient of each linear layer, casts for adapters, and a dequantized weight.

mod completions;
mod dispatched;
mod head;
mod layers;
mod logits;
mod loss;
mod paired;
mod responses;
mod sampled_head;
mod scored_states;
mod shared;
mod updates;

use super::exchange::dispatches;
use super::flow::is_adapted;
use super::norm;
use crate::{Operator, Parts, Saved, Symbols, Transient};
use layers::{attention, mlp};
use loss::output_layer;
use shardscope_explain::Formula;
use shardscope_plan::{LinearModule, LossKind, Normalization};
use shardscope_units::Bytes;
use shared::{AUTOGRAD, FLOAT, WORDS, residual};

const RMS: &str = "transformers/models/llama/modeling_llama.py:LlamaRMSNorm, backward";
static NORM: Formula = Formula::new("12·S·h", "Three gradients in fp32 between the norm's operations.", RMS);
static NORM_KERNEL: Formula = Formula::new("2·S·h·B", "Gradients of the norm's output and input.", AUTOGRAD);
static NORM_WIDE: Formula =
    Formula::new("8·S·h", "Gradients of the norm's output and input in fp32.", AUTOGRAD);
static SUM: Formula = Formula::new(
    "V·h·B",
    "A tied weight's two gradients added: the output layer's is a view, to which nothing is added in place.",
    "torch/csrc/autograd/input_buffer.cpp:accumulate, can_accumulate_inplace",
);
static ALL_WORDS: Formula = Formula::new(
    "t·V·h·B",
    "The word embedding's gradient, all rows of all tensor ranks: DTensor materializes it before it is sharded.",
    "torch/distributed/tensor/_ops/_embedding_ops.py:embedding_dense_backward_strategy",
);
static TOKENS: Formula = Formula::new("T·h·Bx", "Gradient of the experts' output or input.", AUTOGRAD);
static EXPERT_INNER: Formula =
    Formula::new("3·T·fm·Bx", "Gradients of the product and of both halves.", AUTOGRAD);
static EXPERT_WEIGHTS: Formula =
    Formula::new("2·E·fm·h·B", "Gradient of the first weights of all experts.", AUTOGRAD);

/// Transient tensors of `operator` if the software runs such modules; `None` if it runs others.
pub(crate) fn transients(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Transient>> {
    if !x.recipe().software.semantics().eager_modules {
        return None;
    }
    let mut out = match operator {
        Operator::Embedding => embedding(x),
        Operator::InputNorm | Operator::PreMlpNorm | Operator::PreExpertsNorm | Operator::FinalNorm => {
            norms(x)
        }
        Operator::SelfAttention if x.model().encoder.is_some() => paired::attention(x),
        Operator::SelfAttention
        | Operator::WindowedAttention
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention => attention(x),
        Operator::Mlp | Operator::WideMlp => mlp(x),
        Operator::LayerInputs | Operator::LayerInput => {
            super::layer_inputs::backward(operator, x, residual(x))
        }
        Operator::Experts => experts(x),
        Operator::OutputLayer => {
            let mut moments = output_layer(x);
            moments.extend(super::router_loss::transient(x));
            moments
        }
        // The last of backward, when everything that layers saved is freed.
        Operator::Projector | Operator::Positions => Vec::new(),
        Operator::LatentAttention
        | Operator::Linear(_)
        | Operator::MtpProjection
        | Operator::VisionLayer
        | Operator::VisionEnds
        | Operator::Encoder { .. }
        | Operator::CrossNorm
        | Operator::CrossAttention => return None,
    };
    paired::waiting(operator, x, &mut out);
    out.extend(updates::updates(operator, x));
    Some(out)
}

fn embedding(x: &Symbols<'_>) -> Vec<Transient> {
    let (rows, formula) = if x.t > 1 { (x.t * x.v, &ALL_WORDS) } else { (x.v, &WORDS) };
    let words = Saved::new("word embedding gradient", &[rows, x.h], x.width, formula);
    let mut tensors = vec![residual(x)];
    tensors.extend(x.recipe().tuning.embedding.then_some(words));
    // A gradient that autocast casts, or that the loss's own function returns, is a separate tensor, to which the
    // other is added in place.
    let own = matches!(
        x.recipe().loss,
        LossKind::FusedLinear
            | LossKind::Tiled(_)
            | LossKind::FusedTiles
            | LossKind::PolicyRows
            | LossKind::PolicyKernel
    );
    let summed = x.tied() && !x.casts_weights() && !own;
    if summed && x.recipe().tuning.embedding {
        let sum = Saved::new("sum of a tied weight's gradients", &[rows, x.h], x.width, &SUM);
        tensors.push(sum.cut(Parts::SummedGradient));
    }
    vec![Transient::new("backward of the embedding", Bytes::ZERO, tensors)]
}

fn norms(x: &Symbols<'_>) -> Vec<Transient> {
    let kernel = x.model().normalization == Normalization::LayerNorm || norm::is_kernel(x);
    let gradients = if kernel && norm::in_fp32(x) {
        Saved::several("norm gradients in fp32", &[2, x.s_local, x.h], FLOAT, &NORM_WIDE)
    } else if kernel {
        Saved::several("norm gradients", &[2, x.s_local, x.h], x.width, &NORM_KERNEL)
    } else {
        Saved::several("norm gradients in fp32", &[3, x.s_local, x.h], FLOAT, &NORM)
    };
    vec![Transient::new("backward of the norm", Bytes::ZERO, vec![residual(x), gradients])]
}

fn experts(x: &Symbols<'_>) -> Vec<Transient> {
    if dispatches(x) {
        return dispatched::transients(x);
    }
    let (moe, width) = (x.moe, x.expert_width());
    let tokens = Saved::new("gradient of the experts' output", &[moe.sent, x.h], width, &TOKENS);
    let inner = Saved::several("gradients within the experts", &[3, moe.sent, moe.ffn], width, &EXPERT_INNER);
    let mut first = vec![residual(x), tokens, inner];
    let adapted = is_adapted(x, LinearModule::Experts);
    if x.trains || adapted {
        let shape = [2 * moe.experts, moe.ffn, x.h];
        first.push(Saved::new("gradient of the experts' first weights", &shape, x.width, &EXPERT_WEIGHTS));
    }
    vec![Transient::new("backward of the experts", Bytes::ZERO, first)]
}
