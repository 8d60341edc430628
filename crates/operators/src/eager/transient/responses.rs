//! Forward and backward of log-probabilities of padded samples (`responses.rs` beside `ends.rs` has what they keep): the moments of a
//! recorded call at which most is alive, in their order (tests/record/verl_padded.py).

use super::super::tape::Step;
use super::shared::{FLOAT, returned};
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::{Bytes, Count};

const CUT: &str = "verl/workers/actor/dp_actor.py:_forward_micro_batch, where samples are padded";
const ENTROPY: &str = "verl/utils/torch_functional.py:entropy_from_logits under CUDA's autocast";

static LOGITS: Formula =
    Formula::new("n·V·Bc", "The logits as the output layer made them, beside their copied rows.", CUT);
static PRODUCT: Formula = Formula::new("4·b·sampled·V", "Probabilities times logits, fp32.", ENTROPY);
static OF_PRODUCT: Formula =
    Formula::new("8·b·sampled·V", "Gradients of probabilities and logits in their product, fp32.", ENTROPY);
static CAST: Formula =
    Formula::new("b·sampled·V·Bc", "The latter in the logits' dtype, as it is added to others.", ENTROPY);
static OF_SUM: Formula = Formula::new(
    "16·b·sampled·V",
    "The probabilities' gradient, and logits less their log-sum-exp, exponentials of that and their product with the gradient, fp32.",
    "torch/csrc/autograd/FunctionsManual.cpp:logsumexp_backward",
);
static WHOLE: Formula = Formula::new(
    "2·n·V·Bc",
    "The logits' gradient, that of the responses amid zeros, before and after it is divided by the temperature.",
    CUT,
);

/// Beside `output_layer`, what is alive in the backward of the projection in front.
pub(super) fn transients(x: &Symbols<'_>, output_layer: Vec<Saved>) -> Vec<Transient> {
    let (width, several, entropy) = (x.compute_width, x.b > 1, x.entropy_in_loss());
    let rows = [x.b, x.sampled_tokens(), x.v];
    let of_rows = |count: u64| [count, rows[0], rows[1], rows[2]];
    let logits = Saved::new("logits", &[x.n, x.v], width, &LOGITS);
    let forward = match entropy {
        true => vec![Saved::new("probabilities times logits", &rows, FLOAT, &PRODUCT)],
        false if several => vec![logits],
        false => Vec::new(),
    };
    let mut moments = vec![Transient::forward("loss", forward)];
    if entropy {
        let cast = Saved::new("gradient of the responses' logits", &rows, width, &CAST);
        let product = Saved::several("gradients of the product", &of_rows(2), FLOAT, &OF_PRODUCT);
        let sum = Saved::several("backward of the log-sum-exp", &of_rows(4), FLOAT, &OF_SUM);
        // The logits themselves are named by the product alone where their rows were copied.
        let gone = if several { Count::of_shape(&[x.n, x.v]).bytes(width) } else { Bytes::ZERO };
        moments.push(Transient::new("backward of the entropy's product", Bytes::ZERO, vec![product, cast]));
        moments.push(Transient::new("backward of the entropy's log-sum-exp", gone, vec![sum, cast]));
    }
    let all = returned(Operator::OutputLayer, x, &[Step::Core]);
    let whole = Saved::several("gradients of the logits", &[2, x.n, x.v], width, &WHOLE);
    moments.push(Transient::new("backward of the loss", all, vec![whole]));
    moments.push(Transient::new("backward of the output layer", all, output_layer));
    moments
}
