//! What backward holds in the output projection and in the attention itself.

use crate::transient::{gathered, masked, residual, tensors};
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, OffloadModule};
use shardscope_units::Bytes;

const SOURCE: &str = "megatron/core/transformer/multi_latent_attention.py, backward";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static OUTPUT: Formula = Formula::new("n·a·dv·B", "Gradient of the attention output.", SOURCE);
static PACKED: Formula =
    Formula::new("n·a·(2·dn + 2·dr + dv)·B", "Gradients of queries, keys and values.", SOURCE);
static SUMMED: Formula =
    Formula::new("4·n·a·(dn + dr)", "The gradient of the queries, accumulated in fp32.", SOURCE);
static SCORES: Formula = Formula::new("a·s·s·b·B", "Gradient of the attention probabilities.", SOURCE);

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let sizes = x.latent;
    let wide = sizes.plain + sizes.rotary;
    let output = Saved::new("gradient of the output", &[x.n, x.a, sizes.value], x.width, &OUTPUT);
    let packed = [x.n, x.a, 2 * wide + sizes.value];
    let inputs = Saved::new("gradients of query, key and value", &packed, x.width, &PACKED);

    let mut projection = tensors([residual(x)]);
    projection.extend(masked(x));
    projection.extend(gathered(x, "gathered gradient"));
    projection.push(output);

    let mut core = tensors([residual(x), output, inputs]);
    core.push(if x.recipe().attention_kernel == AttentionKernel::Unfused {
        Saved::new("gradient of the probabilities", &[x.b, x.a, x.s, x.s], x.width, &SCORES)
    } else {
        Saved::new("fp32 query gradient", &[x.n, x.a, wide], FLOAT, &SUMMED)
    });
    vec![
        Transient::new("backward of linear_proj", Bytes::ZERO, projection),
        Transient::new("backward of the attention", Bytes::ZERO, core)
            .with(&[OffloadModule::AttentionProjection]),
    ]
}
