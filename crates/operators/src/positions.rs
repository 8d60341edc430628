//! What the layers of a stack share of relative distances between tokens: a table with a row for each bucket of distances and a number
//! for each head, looked up in the first layer and added to the scores of every one
//! (`transformers/models/t5/modeling_t5.py:T5Attention.compute_bias`). Only transformers' modules have it.

use crate::shared::kernel;
use crate::{Account, Message, Saved, Symbols, Transient, Weight, Work};
use shardscope_units::Bytes;

/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

/// Kernels that make buckets of distances: two ranges, their difference, and its sign, magnitude, logarithm and bounds
/// (`T5Attention._relative_position_bucket`). Each reads and writes a number for each pair of tokens.
const BUCKETS: u64 = 14;

pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(encoder) = x.model().encoder else { return Vec::new() };
    let shape = [encoder.buckets, x.model().num_attention_heads];
    vec![Weight::replicated("relative_attention_bias.weight", Account::Attention, &shape)]
}

pub(crate) const fn saved(_: &Symbols<'_>) -> Vec<Saved> {
    Vec::new()
}

pub(crate) const fn transients(_: &Symbols<'_>) -> Vec<Transient> {
    Vec::new()
}

pub(crate) const fn messages(_: &Symbols<'_>) -> Vec<Message> {
    Vec::new()
}

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    let pairs = x.s * x.s;
    let looked = pairs * x.a * x.width;
    let forward = BUCKETS * 2 * INDEX * pairs + INDEX * pairs + 2 * looked;
    vec![kernel("relative_positions", [forward, 2 * looked].map(Bytes::new), [BUCKETS + 2, 1])]
}
