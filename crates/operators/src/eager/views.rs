//! Which tensors around attention are views of others, and which are copies.

use crate::Symbols;
use shardscope_plan::{AttentionKernel, JointParts, PositionEmbedding};

/// Widest head of flash attention, and so of the kernels that take groups.
const WIDEST_GROUPED: u64 = 256;

/// Whether keys and values are taken from a fused projection by index, and so newly allocated.
pub(super) fn is_indexed(x: &Symbols<'_>) -> bool {
    x.model().arrangement.joint_parts == JointParts::Indexed
}

/// Whether queries and keys are rotated, and so newly allocated.
pub(super) fn rotates(x: &Symbols<'_>) -> bool {
    x.model().position_embedding == PositionEmbedding::Rope
}

/// Whether values are a view of the fused projection's output; a key/value cache copies them.
pub(super) fn is_view_of(x: &Symbols<'_>) -> bool {
    let joins = x.recipe().software.semantics().modules.joins_projections;
    let fused = x.model().arrangement.fused_qkv && !is_indexed(x);
    (joins || fused) && !x.recipe().transformers.cache
}

/// Whether heads are too wide for a kernel of SDPA that takes fewer key heads than query heads, so that these are repeated
/// (`transformers/integrations/sdpa_attention.py:use_gqa_in_sdpa`, since huggingface/transformers#46960). Flash attention and cuDNN
/// take heads of up to 256; the memory-efficient kernel any that are a multiple of 8, and keeps no scores
/// (`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp:check_head_dim_size_flash, check_head_dim_size_mem_efficient`).
pub(super) fn is_too_wide(x: &Symbols<'_>, kernel: AttentionKernel) -> bool {
    kernel == AttentionKernel::Sdpa && x.d > WIDEST_GROUPED
}

/// Whether a single key head becomes all queries' without a copy: expanded and reshaped
/// (`transformers/integrations/sdpa_attention.py:repeat_kv`), where only its module repeats it.
pub(super) fn expands_as_view(x: &Symbols<'_>) -> bool {
    let modules = &x.recipe().software.semantics().modules;
    !(modules.repeats_groups || modules.repeats_for_sdpa || is_indexed(x) || is_view_of(x))
}

/// Whether autocast casts a key head after it was expanded, and so a copy for every query head: rotation by cosines and sines in
/// the weights' dtype makes keys wider than products.
pub(super) fn is_cast_wide(x: &Symbols<'_>) -> bool {
    rotates(x) && x.casts_weights()
}
