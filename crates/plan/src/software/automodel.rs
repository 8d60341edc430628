//! NeMo Automodel's row.

use super::offers::Offers;
use super::rows::{HF_TRANSFORMERS, OTHER_OFFERS, TRANSFORMERS_MODULES};
use super::semantics::{Modules, NormModule, Semantics};

/// NeMo Automodel (`components/models/llama/model.py`, `qwen2/model.py`): transformers' modules, but with compiled norms
/// (`common/utils.py:Float32RMSNorm`), which save their input in its dtype. Qwen3's (`qwen3/model.py`) are all transformers'.
/// Models with experts (`qwen3_moe/model.py`, `deepseek_v3/model.py`) are its own throughout.
pub(super) const AUTOMODEL: Semantics = Semantics {
    modules: Modules {
        name: "NeMo Automodel",
        norm: NormModule::KernelAlone,
        dispatches_experts: true,
        ..TRANSFORMERS_MODULES
    },
    fsdp_fp32_shards: false,
    // It recomputes a layer's modules one by one and never a whole layer.
    offers: Offers { recomputes_layers: false, ..OTHER_OFFERS },
    ..HF_TRANSFORMERS
};
