//! The sizes on one rank from which every formula is written, named as in the documentation:
//! `s` sequence on this rank, `b` micro-batch, `n = s·b` tokens, `h` hidden, `t` tensor size,
//! `S = n/t` with sequence parallelism else `n`, `a` and `k` query and key/value heads on this rank,
//! `d` head width, `A = a·d`, `K = k·d`, `f` MLP width on this rank, `V` vocabulary on this rank,
//! `B` bytes of a 16-bit (or 32-bit) element.

use crate::plan::{Embeddings, Model, Plan, Recipe};
use crate::quantity::Bytes;

/// Sizes on one rank. All are exact and follow from the plan alone.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    /// The plan they are of.
    pub plan: &'a Plan,
    /// Tokens of a sequence on this rank: seq / c.
    pub s: u64,
    /// Micro-batch.
    pub b: u64,
    /// Tokens of a micro-batch on this rank.
    pub n: u64,
    /// Tokens in sequence-parallel regions.
    pub s_local: u64,
    /// Hidden size.
    pub h: u64,
    /// Tensor parallel size.
    pub t: u64,
    /// Query heads on this rank.
    pub a: u64,
    /// Key/value heads on this rank (at least one).
    pub k: u64,
    /// Head width.
    pub d: u64,
    /// MLP width on this rank.
    pub f: u64,
    /// Padded vocabulary on this rank.
    pub v: u64,
    /// Bytes of an element of weights and activations.
    pub width: u64,
    /// Bytes of an element of the residual stream.
    pub residual_width: u64,
    /// 2 when the MLP is gated, else 1.
    pub gate: u64,
}

impl<'a> Symbols<'a> {
    /// The sizes of `plan`.
    #[must_use]
    pub fn of(plan: &'a Plan) -> Self {
        let (model, layout, recipe) = (plan.model(), plan.layout(), plan.recipe());
        let t = layout.tensor;
        let s = model.seq_length / layout.context;
        let b = recipe.micro_batch_size;
        let n = s * b;
        let width = recipe.params_dtype.width();
        Self {
            plan,
            s,
            b,
            n,
            s_local: if layout.sequence_parallel { n / t } else { n },
            h: model.hidden_size,
            t,
            a: model.num_attention_heads / t,
            k: (model.num_query_groups / t).max(1),
            d: model.kv_channels,
            f: model.ffn_hidden_size / t,
            v: model.padded_vocab_size / t,
            width,
            residual_width: if recipe.fp32_residual { 4 } else { width },
            gate: model.gate_factor(),
        }
    }

    /// The same plan on a single rank: every parallel size 1 (for the unsharded model's figures).
    #[must_use]
    pub fn model(&self) -> &'a Model {
        self.plan.model()
    }

    /// The recipe.
    #[must_use]
    pub fn recipe(&self) -> &'a Recipe {
        self.plan.recipe()
    }

    /// Tokens of a micro-batch without context or sequence parallelism: seq · b.
    #[must_use]
    pub fn full_tokens(&self) -> u64 {
        self.plan.model().seq_length * self.b
    }

    /// Bytes of so many elements of weights and activations.
    #[must_use]
    pub fn bytes(&self, elements: u64) -> Bytes {
        Bytes::new(elements.saturating_mul(self.width))
    }

    /// Whether the output layer reuses the word embedding.
    #[must_use]
    pub fn tied(&self) -> bool {
        self.plan.model().embeddings == Embeddings::Tied
    }
}
