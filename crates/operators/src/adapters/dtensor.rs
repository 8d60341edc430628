//! Adapters beside linear layers that DTensor cuts over tensor ranks: both matrices of each are cut
//! (`nemo_automodel/components/distributed/parallel_styles.py`; recorded: `tests/record/dtensor_automodel.py`).

use super::own_linears::{Adapted, linears};
use crate::message::Call;
use crate::{Account, Collective, Dimension, Message, Operator, Symbols, Weight, WeightRole, Work};
use shardscope_explain::Formula;
use shardscope_plan::{LinearModule, Lora, RecomputeModule};

const STYLES: &str =
    "nemo_automodel/components/distributed/parallel_styles.py:ColwiseParallelLora, RowwiseParallelLora";
const COSTS: &str = "torch/distributed/tensor/_collective_utils.py:redistribute_cost";
const TENSOR: Dimension = Dimension::Tensor;

macro_rules! calls {
    ($($name:ident $pass:ident $collective:ident $tensor:literal $size:literal $source:ident $why:literal;)*) => {
        $(static $name: Call =
            Call::$pass(TENSOR, Collective::$collective, $tensor, Formula::new($size, $why, $source));)*
    };
}

calls! {
    GATHER_MIDDLE forward AllGather "A's output" "s·b·r·B" STYLES "A is sharded by rows, so each rank holds some columns of its output.";
    SCATTER_MIDDLE_GRADIENT backward ReduceScatter "B's input gradient" "s·b·r·B" STYLES "Every rank holds a partial sum of it; it is reduced and scattered by columns, as A made them.";
    SCATTER_MIDDLE forward ReduceScatter "A's output" "s·b·r·B" STYLES "Every rank holds a partial sum of the output of A, which is sharded by columns.";
    GATHER_B forward AllGather "B" "h·r·B" COSTS "B is gathered instead of A's output being reduced where it is smaller: DTensor takes the cheaper way.";
    GATHER_MIDDLE_GRADIENT backward AllGather "B's input gradient" "s·b·r·B" STYLES "Every rank holds some columns of it, and A's gradients read all.";
    GATHER_MIDDLE_AGAIN backward AllGather "A's output again" "s·b·r·B" STYLES "B's weight gradient reads all columns of it.";
}

/// Whether DTensor cuts the adapters' layers.
pub(super) fn cuts(x: &Symbols<'_>) -> bool {
    x.t > 1 && x.recipe().transformers.dtensor_plan
}

/// Whether a linear layer is cut by its input.
const fn is_row(module: LinearModule) -> bool {
    matches!(module, LinearModule::Output | LinearModule::Down)
}

/// Whether B is gathered instead of A's output being reduced: it is, where it has fewer rows than there are tokens.
const fn gathers_second(x: &Symbols<'_>, outer: u64) -> bool {
    x.n > outer
}

/// A and B of a layer of which `inner` and `outer` are this rank's columns.
pub(super) fn matrices(
    x: &Symbols<'_>,
    (module, account, [inner, outer]): Adapted,
    rank: u64,
) -> [Weight; 2] {
    let (t, first, second) = (x.t, "lora_A.weight", "lora_B.weight");
    let cut = if is_row(module) {
        [Weight::row(first, account, [rank, inner * t], t), Weight::row(second, account, [outer, rank], t)]
    } else {
        [
            Weight::column(first, account, [rank, inner], t),
            Weight::column(second, account, [outer * t, rank], t),
        ]
    };
    // Not counted among the layers that number formats of their own may hold.
    cut.map(|weight| Weight { role: WeightRole::Adapter, linear: false, ..weight })
}

/// The products of A and B.
pub(super) fn products(
    x: &Symbols<'_>,
    module: LinearModule,
    [inner, outer]: [u64; 2],
    rank: u64,
) -> [Work; 2] {
    let (tokens, part) = (x.full_tokens(), rank / x.t);
    let [first, second] = match module {
        _ if !is_row(module) => [part, rank],
        _ if gathers_second(x, outer) => [rank, rank],
        _ => [rank, part],
    };
    [
        Work::plain_linear("lora_A", [x.n, first, inner], [tokens, rank, inner]),
        Work::plain_linear("lora_B", [x.n, outer, second], [tokens, outer, rank]),
    ]
}

/// What `operator`'s adapters send for one micro-batch.
pub(super) fn messages(operator: Operator, x: &Symbols<'_>, lora: Lora) -> Vec<Message> {
    let mut out = Vec::new();
    let thin = [x.s, x.b, lora.rank];
    for (module, account, [_, outer]) in linears(operator, x) {
        if !lora.modules.has(module) {
            continue;
        }
        if !is_row(module) {
            let calls: &[&'static Call] = &[&GATHER_MIDDLE, &SCATTER_MIDDLE_GRADIENT];
            let mut sent = Message::each(x, calls, "lora", &thin, 1);
            for message in &mut sent {
                message.modules = again(account);
            }
            out.extend(sent);
            continue;
        }
        let mut first = if gathers_second(x, outer) {
            Message::new(x, &GATHER_B, "lora", &[outer, lora.rank])
        } else {
            Message::new(x, &SCATTER_MIDDLE, "lora", &thin)
        };
        // A checkpoint that is not reentrant computes no further than the last tensor that backward asks for.
        first.in_layer = module != LinearModule::Down;
        out.push(first);
        let calls: &[&'static Call] = &[&GATHER_MIDDLE_GRADIENT, &GATHER_MIDDLE_AGAIN];
        out.extend(Message::each(x, calls, "lora", &thin, 1));
    }
    out
}

/// The modules with which a column-parallel layer's products are done again.
fn again(account: Account) -> &'static [RecomputeModule] {
    if account == Account::Attention { &[RecomputeModule::Attention] } else { &[RecomputeModule::Mlp] }
}

/// Elements of the gradients of B of a layer's row-parallel adapters that are other ranks' columns: DTensor makes them whole.
pub(crate) fn others_columns(x: &Symbols<'_>, operator: Operator) -> u64 {
    let Some(lora) = x.recipe().tuning.lora.filter(|_| cuts(x)) else { return 0 };
    let rows =
        linears(operator, x).into_iter().filter(|(module, ..)| is_row(*module) && lora.modules.has(*module));
    rows.map(|(_, _, [_, outer])| outer * (lora.rank - lora.rank / x.t)).sum()
}
