//! What stays alive between the two halves of a split backward.

use shardscope_operators::{Operator, Symbols, Work, work_of};
use shardscope_schedule::Shape;
use shardscope_units::{Bytes, Count};

/// Input and output gradient of every linear layer, from which its weight gradient is computed.
pub(super) fn waiting(x: &Symbols<'_>, operators: &[Operator]) -> Bytes {
    if !Shape::from_plan(x.plan).splits_backward() {
        return Bytes::ZERO;
    }
    let mut bytes = Bytes::ZERO;
    for work in work_of(x, operators) {
        if let Work::Matmul(matmul) = work
            && matmul.kind.has_weight()
        {
            // dW = dYᵀ·X: only the output's gradient and the input have to stay until the weight gradient runs.
            let [rows, outer, inner] = matmul.local;
            bytes += Count::of_shape(&[rows, outer.saturating_add(inner), matmul.batch]).bytes(x.width);
        }
    }
    bytes
}
