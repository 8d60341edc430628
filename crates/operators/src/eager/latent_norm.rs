//! The norms of multi-latent attention's latents.

use super::exchange::dispatches;
use super::norm::DEVIATION;
use super::tape::Tape;
use shardscope_explain::Formula;

const LATENT: &str = "transformers/models/deepseek_v3/modeling_deepseek_v3.py:DeepseekV3RMSNorm";
const OWN_LATENT: &str = "nemo_automodel/components/models/deepseek_v3/layers.py:MLA";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static QUERY_LATENT_INPUT: Formula = Formula::new("4·n·ql", "The query latent in fp32.", LATENT);
static QUERY_LATENT_NORMED: Formula = Formula::new("n·ql·Bc", "The normalised query latent.", LATENT);
static KV_LATENT_INPUT: Formula = Formula::new("4·n·kl", "The key/value latent in fp32.", LATENT);
static KV_LATENT_VIEW: Formula = Formula::new(
    "4·n·(kl + dr)",
    "The fp32 projection's output, of which the key/value latent is a view.",
    LATENT,
);
static OWN_QUERY_LATENT: Formula = Formula::new("n·ql·Bc", "The query latent.", OWN_LATENT);
static OWN_KV_LATENT: Formula = Formula::new(
    "n·(kl + dr)·Bc",
    "The projection's output, of which the key/value latent is a view.",
    OWN_LATENT,
);
static KV_LATENT_NORMED: Formula = Formula::new("n·kl·Bc", "The normalised key/value latent.", LATENT);

/// Names and formulas of what a norm of a latent saves.
pub(super) struct OfLatent {
    names: [&'static str; 3],
    input: &'static Formula,
    whole: &'static Formula,
    own: &'static Formula,
    normed: &'static Formula,
}

pub(super) static QUERY_LATENT: OfLatent = OfLatent {
    names: ["query latent", "query latent statistics", "normalised query latent"],
    input: &QUERY_LATENT_INPUT,
    whole: &QUERY_LATENT_INPUT,
    own: &OWN_QUERY_LATENT,
    normed: &QUERY_LATENT_NORMED,
};
pub(super) static KEY_VALUE_LATENT: OfLatent = OfLatent {
    names: ["key/value latent", "key/value latent statistics", "normalised key/value latent"],
    input: &KV_LATENT_INPUT,
    whole: &KV_LATENT_VIEW,
    own: &OWN_KV_LATENT,
    normed: &KV_LATENT_NORMED,
};

/// The norm of a latent of the first width within a projection's output of the second; `needed`: whether it requires
/// a gradient. Returns whether its output does.
pub(super) fn of_latent(
    tape: &mut Tape<'_, '_>,
    of: &OfLatent,
    [own, whole]: [u64; 2],
    needed: bool,
) -> bool {
    let x = tape.x;
    let [input, statistics, normed] = of.names;
    if dispatches(x) {
        // The compiled norm keeps its input, of which the key/value latent is a view.
        tape.keep(needed, input, &[x.n, whole], x.compute_width, of.own);
        tape.keep(needed, statistics, &[x.n], FLOAT, &DEVIATION);
        return x.trains;
    }
    // In fp32 there is nothing to cast, and a view keeps its storage alive.
    if x.compute_width == FLOAT {
        tape.keep(needed, input, &[x.n, whole], FLOAT, of.whole);
    } else {
        tape.keep(needed, input, &[x.n, own], FLOAT, of.input);
    }
    tape.keep(needed, statistics, &[x.n], FLOAT, &DEVIATION);
    tape.keep(x.trains, normed, &[x.n, own], x.compute_width, of.normed);
    needed || x.trains
}
