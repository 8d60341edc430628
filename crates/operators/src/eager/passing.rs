//! What forward of eager modules allocates and frees within an operator, apart from what is saved: too little for a
//! peak, but blocks that the allocator holds from then on.

use super::norm;
use crate::{Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{Normalization, PositionEmbedding};

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static SQUARES: Formula = Formula::new(
    "4·S·h",
    "Squares of the norm's input in fp32, of which the mean is taken; then the product with its root.",
    "transformers/models/llama/modeling_llama.py:LlamaRMSNorm.forward",
);
static TERMS: Formula = Formula::new(
    "4·n·A·Bc",
    "Queries before their rotation, their halves exchanged, and the products with cosines and sines.",
    "transformers/models/llama/modeling_llama.py:apply_rotary_pos_emb",
);

/// What forward of `operator` allocates and frees, of modules that PyTorch runs operation by operation: of no others the order of
/// allocations is followed (`memory/sequence.rs:followed`).
pub(crate) fn passing(operator: Operator, x: &Symbols<'_>) -> Vec<Saved> {
    let squares = x.model().normalization == Normalization::RmsNorm && !norm::is_kernel(x);
    let rotates = x.model().position_embedding == PositionEmbedding::Rope;
    match operator {
        Operator::InputNorm | Operator::PreMlpNorm | Operator::PreExpertsNorm | Operator::FinalNorm
            if squares =>
        {
            vec![Saved::new("squares of the norm's input", &[x.s_local, x.h], FLOAT, &SQUARES)]
        }
        Operator::SelfAttention
        | Operator::WindowedAttention
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention
            if rotates =>
        {
            vec![Saved::several(
                "terms of the queries' rotation",
                &[4, x.n, x.a * x.d],
                x.compute_width,
                &TERMS,
            )]
        }
        _ => Vec::new(),
    }
}
