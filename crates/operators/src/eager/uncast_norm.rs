//! Norms whose input is multiplied by its fp32 root in its own dtype (T5's).

use super::tape::Tape;
use shardscope_explain::Formula;
use shardscope_plan::NormProduct;

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static NORM_INPUT: Formula = Formula::new(
    "S·h·B",
    "The norm's input in its own dtype, which its fp32 root multiplies.",
    "transformers/models/t5/modeling_t5.py:T5LayerNorm.forward",
);

/// What a norm keeps whose input is multiplied by its root in its own dtype, beside the input in fp32.
pub(super) fn input_of_norm(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    let uncast = x.model().arrangement.norm_product == NormProduct::Uncast && x.width < FLOAT;
    tape.keep(needed && uncast, "norm input in its own dtype", &[x.s_local, x.h], x.width, &NORM_INPUT);
}
