//! Weights of one depth in addition to its transformer layer (`megatron/core/transformer/multi_token_prediction.py`):
//! norms of the embedding and of the hidden state, the projection of the two back to one, and a final norm.

use crate::{Account, Created, Symbols, Weight, norm};

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let norm = |names| norm::scale(x, names, Account::Norms, x.h);
    let mut out = norm(["mtp.enorm.weight", "mtp.enorm.bias"]);
    out.extend(norm(["mtp.hnorm.weight", "mtp.hnorm.bias"]));
    out.push(Weight::column("mtp.eh_proj.weight", Account::Other, [x.h, 2 * x.h], x.t));
    for weight in &mut out {
        weight.created = Created::BeforeLayer;
    }
    let last = norm(["mtp.final_layernorm.weight", "mtp.final_layernorm.bias"]);
    out.extend(last.into_iter().map(|weight| weight.created(Created::Last)));
    out
}
