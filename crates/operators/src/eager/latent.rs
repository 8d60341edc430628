//! Multi-latent attention: projections to latents and back, the core over heads concatenated from two parts, the
//! output projection.

use super::attention::{self, NORMED, RESULT};
use super::exchange::dispatches;
use super::flow::Flow;
use super::latent_norm::{KEY_VALUE_LATENT, QUERY_LATENT, of_latent};
use super::linear::{HEADS_OUT, Input, KV_DOWN, KV_UP, LATENT_QUERY, QUERY_DOWN, QUERY_UP};
use super::norm;
use super::tape::{Step, Tape};
use shardscope_explain::Formula;
use shardscope_plan::AttentionKernel;

const MODULE: &str = "transformers/models/deepseek_v3/modeling_deepseek_v3.py:DeepseekV3Attention";
const PADDED: &str = "transformers/integrations/flash_attention.py:flash_attention_forward";

static HEADS: Formula = Formula::new(
    "n·a·(dn + dr)·Bc",
    "Queries or keys, joined of their plain and their rotated part.",
    MODULE,
);
static WHOLE: Formula = Formula::new(
    "n·a·(dn + dv)·Bc",
    "The key/value latent's second projection, of which the values are a view.",
    MODULE,
);
static VALUES: Formula = Formula::new("n·a·dv·Bc", "The values.", MODULE);
static WIDENED: Formula = Formula::new(
    "n·a·(dn + dr)·Bc",
    "The values, or the attention's output, as wide as keys: the kernel knows one width.",
    PADDED,
);
static OUT: Formula =
    Formula::new("n·a·dv·Bc", "The attention's output, which the output projection reads.", MODULE);

pub(super) fn attention(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let flow = Flow::new(x);
    let sizes = x.latent;
    let (wide, narrow) = (x.a * (sizes.plain + sizes.rotary), x.a * sizes.value);
    let input = Input { shared: Some(NORMED), needed: flow.norm1, cast: false };
    tape.step = Step::First;
    if sizes.query == 0 {
        LATENT_QUERY.run(tape, input, [x.h, wide]);
    } else {
        let needed = QUERY_DOWN.run(tape, input, [x.h, sizes.query]);
        let needed = of_latent(tape, &QUERY_LATENT, [sizes.query; 2], needed);
        QUERY_UP.run(tape, Input { shared: None, needed, cast: false }, [sizes.query, wide]);
    }
    let down = sizes.key_value + sizes.rotary;
    let needed = KV_DOWN.run(tape, input, [x.h, down]);
    let needed = of_latent(tape, &KEY_VALUE_LATENT, [sizes.key_value, down], needed);
    let up = x.a * (sizes.plain + sizes.value);
    KV_UP.run(tape, Input { shared: None, needed, cast: false }, [sizes.key_value, up]);
    tape.step = Step::Core;
    attention::temperature(tape, &flow);
    let kernel = x.recipe().attention_kernel;
    let (width, any) = (x.compute_width, flow.attention);
    if kernel == AttentionKernel::Unfused {
        tape.keep(flow.key, "query", &[x.n, wide], width, &HEADS);
        tape.keep(flow.query, "key", &[x.n, wide], width, &HEADS);
        attention::scores(tape, &flow);
        // One sequence's values need no copy to be multiplied head by head.
        let (columns, formula) = if x.b == 1 { (up, &WHOLE) } else { (narrow, &VALUES) };
        tape.keep(flow.query || flow.key, "value", &[x.n, columns], width, formula);
    } else {
        let flash = kernel == AttentionKernel::Flash;
        let padded = flash && sizes.value < sizes.plain + sizes.rotary;
        let (values, result) = if dispatches(x) {
            // Transformer Engine's kernel takes values of another width, but no view of them
            // (`dot_product_attention/utils.py:get_qkv_layout`).
            ((narrow, &VALUES), (narrow, &OUT))
        } else if padded {
            ((wide, &WIDENED), (wide, &WIDENED))
        } else {
            ((up, &WHOLE), (narrow, &OUT))
        };
        tape.keep(any, "query", &[x.n, wide], width, &HEADS);
        tape.keep(any, "key", &[x.n, wide], width, &HEADS);
        tape.keep(any, "value", &[x.n, values.0], width, values.1);
        tape.keep(any, RESULT, &[x.n, result.0], width, result.1);
        attention::beside(tape, any, kernel);
    }
    // What is sliced or transposed is copied; the kernel for values of a different width moves tokens before heads
    // itself.
    let own = dispatches(x) || kernel == AttentionKernel::Sdpa && sizes.value != sizes.plain + sizes.rotary;
    let shared = own.then_some(RESULT);
    tape.step = Step::Last;
    HEADS_OUT.run(tape, Input { shared, needed: any, cast: true }, [narrow, x.h]);
    tape.step = Step::Core;
    norm::post(tape, flow.projected);
}
