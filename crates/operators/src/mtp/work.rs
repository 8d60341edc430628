//! Arithmetic of a multi-token-prediction depth in addition to its layer: the look-up of the shifted tokens, two
//! norms and the joining projection before it, final norm, output layer and loss after it
//! (`megatron/core/transformer/multi_token_prediction.py`).

use crate::shared::kernel;
use crate::{Operator, Symbols, Work};

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let elements = x.s_local * x.h;
    let mut work = Operator::Embedding.work(x);
    work.push(kernel("enorm_hnorm", [x.bytes(4 * elements), x.bytes(8 * elements)], [2, 4]));
    let local = [x.n, x.h / x.t.max(1), 2 * x.h];
    work.push(Work::linear("eh_proj", local, [x.full_tokens(), x.h, 2 * x.h]));
    work.extend(Operator::FinalNorm.work(x));
    work.extend(Operator::OutputLayer.work(x));
    work
}
