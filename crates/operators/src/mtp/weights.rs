//! Weights of one depth beside its transformer layer (`megatron/core/transformer/multi_token_prediction.py`):
//! norms of the embedding and of the hidden state, the projection of the two back to one, and a final norm.

use crate::{Account, Symbols, Weight, norm};

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let mut out = norm::scale(x, ["mtp.enorm.weight", "mtp.enorm.bias"], Account::Norms, x.h);
    out.extend(norm::scale(x, ["mtp.hnorm.weight", "mtp.hnorm.bias"], Account::Norms, x.h));
    out.push(Weight::column("mtp.eh_proj.weight", Account::Other, [x.h, 2 * x.h], x.t));
    out.extend(norm::scale(
        x,
        ["mtp.final_layernorm.weight", "mtp.final_layernorm.bias"],
        Account::Norms,
        x.h,
    ));
    out
}
