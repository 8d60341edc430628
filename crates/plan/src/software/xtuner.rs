//! The row for XTuner before its version 1.

use super::rows::{HF_TRANSFORMERS, TRANSFORMERS_MODULES};
use super::semantics::{Modules, Semantics};

/// XTuner before its version 1 (`xtuner/model/sft.py`): transformers' modules, except that the attention of Llama, Mistral and
/// Qwen2 repeats keys and values for every query head before flash-attn (`model/modules/dispatch/llama.py:llama_attn_forward`).
pub(super) const XTUNER: Semantics = Semantics {
    modules: Modules { name: "XTuner", repeats_groups: true, ..TRANSFORMERS_MODULES },
    ..HF_TRANSFORMERS
};
