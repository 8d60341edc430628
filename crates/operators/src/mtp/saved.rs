//! Tensors saved for backward by one depth in addition to its transformer layer: the embedding of the shifted tokens,
//! the norms, the projection's input, and the output layer's part in it.

use crate::{Saved, Symbols, embedding, norm, output_layer};
use shardscope_explain::Formula;

const SOURCE: &str = "megatron/core/transformer/multi_token_prediction.py";

static PROJECTION: Formula = Formula::new(
    "2·S·h·Bi",
    "The projection's input: normed embedding and hidden state side by side.",
    SOURCE,
);

static GATHERED: Formula = Formula::new(
    "(n - S)·h·B",
    "The projection's output is gathered over the tensor ranks; the layer's input, a view of this rank's tokens, holds all of it.",
    SOURCE,
);
static CHECKPOINTED: Formula =
    Formula::new("2·S·h·B", "Embedding and hidden state, inputs of the recomputed depth.", SOURCE);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = embedding::saved(x);
    // The checkpoint spans projection and layer; final norm, output layer and loss are outside of it and save as
    // usual.
    if x.recomputes_layers() {
        out.push(Saved::new("recomputed depth's inputs", &[2, x.s_local, x.h], x.width, &CHECKPOINTED));
    } else {
        out.extend(inner(x));
    }
    out.extend(norm::kept(x));
    out.extend(output_layer::saved(x));
    out
}

/// What is saved before the depth's transformer layer.
fn inner(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(7);
    for _ in ["enorm", "hnorm"] {
        out.extend(norm::kept(x));
    }
    if x.sequence_parallel {
        let rest = x.n.saturating_sub(x.s_local);
        out.push(Saved::new("rest of the gathered projection", &[rest, x.h], x.width, &GATHERED));
    }
    out.push(Saved::new("eh_proj input", &[x.s_local, 2 * x.h], x.input_width, &PROJECTION));
    out
}
