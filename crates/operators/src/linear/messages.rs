//! Messages: around the two projections (`megatron/core/ssm/mamba_mixer.py`, `gated_delta_net.py`), and under context
//! parallelism the exchange of sequence for heads before the convolution and back
//! (`megatron/core/ssm/mamba_context_parallel.py:MambaContextParallel`).

use crate::exchange::{FROM_RESIDUAL, column, row};
use crate::message::Call;
use crate::{Collective, Dimension, Message, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::LinearKind;

const SOURCE: &str = "megatron/core/ssm/mamba_context_parallel.py";
const SWAP: Collective = Collective::AllToAll;

static TO_HEADS: [Call; 2] = [
    Call::forward(
        Dimension::Context,
        SWAP,
        "projected input",
        Formula::new("n·(2·lv + 2·lk + hv)·B", "All-to-all from sequence to heads before the scan.", SOURCE),
    ),
    Call::backward(
        Dimension::Context,
        SWAP,
        "projected input",
        Formula::new("n·(2·lv + 2·lk + hv)·B", "The same exchange for its gradient.", SOURCE),
    ),
];
static TO_SEQUENCE: [Call; 2] = [
    Call::forward(
        Dimension::Context,
        SWAP,
        "scanned output",
        Formula::new("n·lv·B", "All-to-all from heads back to sequence after the scan.", SOURCE),
    ),
    Call::backward(
        Dimension::Context,
        SWAP,
        "scanned output",
        Formula::new("n·lv·B", "The same exchange for its gradient.", SOURCE),
    ),
];

pub(crate) fn messages(_kind: LinearKind, x: &Symbols<'_>) -> Vec<Message> {
    let mut messages = column(x, &FROM_RESIDUAL, "in_proj", x.h);
    // A scan runs along the whole sequence, so ranks trade heads for it, as Ulysses does around attention.
    if x.plan.layout().context > 1 {
        let sizes = x.linear;
        let wide = 2 * (sizes.values() + sizes.keys()) + sizes.value_heads;
        let [forward, backward] = &TO_HEADS;
        messages.extend(Message::each(x, &[forward, backward], "in_proj", &[x.s, x.b, wide], 1));
        let [forward, backward] = &TO_SEQUENCE;
        messages.extend(Message::each(x, &[forward, backward], "out_proj", &[x.s, x.b, sizes.values()], 1));
    }
    messages.extend(row(x, "out_proj"));
    messages
}
