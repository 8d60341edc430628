//! What a transfer of weights to an inference engine holds beside the trainer's own.

use super::totals::Totals;
use crate::parameters::parameters;
use shardscope_explain::{Breakdown, Explanation, Formula};
use shardscope_plan::{Bucket, DpSharding, Plan, Rollout};
use shardscope_units::{Bytes, Count, Quantity};

static LOADED: Formula = Formula::new(
    "W",
    "The policy's weights, reloaded from the host for the weight sync.",
    "see the framework's weight sync",
)
.letters(&[("W", "bytes of the weights")]);
static TENSOR: Formula = Formula::new(
    "V·h·w",
    "The largest tensor, gathered in full: the embedding, w bytes per element.",
    "see the framework's weight sync",
)
.letters(&[("V", "padded vocabulary size"), ("h", "hidden size"), ("w", "bytes per element")]);
static COPIED: Formula = Formula::new(
    "P·w·q",
    "All weights at once, P elements: a copy to send, and beside it the gathered weights where they are sharded (q = 2).",
    "open_instruct/vllm_utils.py:broadcast_weights_to_vllm, gather_whole_model",
).letters(&[("P", "parameters"), ("w", "bytes per element"), ("q", "copies at once")]);
static BUFFER: Formula =
    Formula::new("u", "A bucket of weights in flight to the engine.", "slime --update-weight-buffer-size")
        .letters(&[("u", "bytes")]);

/// A part of a phase.
pub(super) fn leaf(
    label: &'static str,
    bytes: Bytes,
    formula: &'static Formula,
    symbols: &[(&'static str, f64)],
) -> Breakdown<Bytes> {
    Breakdown::leaf(label, bytes).because(Explanation::new(formula, symbols))
}

/// All weights, gathered and copied at once by the sending rank.
pub(super) fn copied(plan: &Plan) -> Breakdown<Bytes> {
    let count = parameters(plan).total;
    let width = plan.recipe().module_dtype().width();
    let times = if plan.recipe().dp_sharding == DpSharding::Parameters { 2 } else { 1 };
    let given = [("P", count.number()), ("w", Count::new(width).number()), ("q", Count::new(times).number())];
    leaf("copy of all weights", count.bytes(width) * times, &COPIED, &given)
}

/// The largest rank's shards of weights that are kept on the host during training.
fn shards(plan: &Plan) -> Bytes {
    let most = parameters(plan).ranks.iter().map(|rank| rank.count).max().unwrap_or_default();
    Bytes::new(
        most.bytes(plan.recipe().params_dtype.width()).get().div_ceil(plan.layout().dense_shards().max(1)),
    )
}

/// What is on the accelerator only during weight transfer.
pub(super) fn handed_over(plan: &Plan, rollout: &Rollout, totals: &Totals) -> Vec<Breakdown<Bytes>> {
    let semantics = rollout.framework.semantics(plan.recipe().software.semantics().cuts_models);
    let mut out = Vec::new();
    if semantics.loads_weights && rollout.offloads.weights {
        let weights = if plan.recipe().offload.parameters { shards(plan) } else { totals.parameters };
        out.push(leaf("the policy's weights", weights, &LOADED, &[("W", weights.number())]));
    }
    let bucket = match semantics.bucket {
        Bucket::Tensor => {
            let model = plan.model();
            let width = plan.recipe().params_dtype.width();
            let count = Count::of_shape(&[model.padded_vocab_size, model.hidden_size]);
            let given = [
                ("V", Count::new(model.padded_vocab_size).number()),
                ("h", Count::new(model.hidden_size).number()),
                ("w", Count::new(width).number()),
            ];
            leaf("largest gathered tensor", count.bytes(width), &TENSOR, &given)
        }
        Bucket::Bytes(Bytes::ZERO) => return out,
        Bucket::Bytes(bytes) => leaf("weight sync buffer", bytes, &BUFFER, &[("u", bytes.number())]),
    };
    out.push(bucket);
    out
}
