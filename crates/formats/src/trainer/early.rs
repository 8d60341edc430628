//! Arguments that tell an early release, or a format of weights.

use super::behind;
use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;

/// Weights in fp16 have gradients in fp16, which the gradient scaler refuses to unscale
/// (`torch/amp/grad_scaler.py:_unscale_grads_`; accelerate's clipping calls it).
pub(super) const SCALED: &str =
    "weights that train under fp16's loss scaling are in fp32; those in fp16 are refused";

pub(super) const KEPT: &str = "the checkpoint's dtype, which transformers 5 keeps";

pub(super) const FOUR: &str = "transformers 4, which the text tells, loads models in fp32 by default";

/// Whether a model's checkpoint is in fp32: GPT-2's four (openai/gpt-2 `DEVELOPERS.md`: 500 MB for 124 million parameters,
/// 6 GB for 1,558 million) and the one distilled from it, whose configurations name no format.
pub(super) fn is_in_fp32(model: &str) -> bool {
    let name = model.trim_end_matches('/').rsplit('/').next().unwrap_or(model);
    matches!(name, "gpt2" | "gpt2-medium" | "gpt2-large" | "gpt2-xl" | "distilgpt2")
}

/// Whether the arguments are those of transformers 4, and FSDP shards the weights as loaded (`modeling_utils.py:from_pretrained` without `torch_dtype`). DeepSpeed's engine casts
/// them, wherever it is configured.
pub(super) fn is_of_four(leaves: &Leaves<'_>, dialect: Dialect) -> bool {
    let sharded = matches!(leaves.reading.value(Field::DataParallelEngine), Some("fsdp1" | "fsdp2"));
    dialect == Dialect::Transformers && sharded && behind::is_of_four(leaves)
}

/// `max_length` in a file of a time when it was an argument of TRL's trainers for pairs alone: SFT's was
/// `max_seq_length` until TRL 0.16 (`trl/trainer/sft_config.py`), as transformers took `evaluation_strategy` away in 4.51.
pub(super) fn length_of_pairs<'t>(leaves: &Leaves<'t>) -> Option<&'t Leaf> {
    let early = leaves.has("evaluation_strategy") && !leaves.has("max_seq_length");
    leaves.get("max_length").filter(|_| early)
}
