//! litgpt's rows.

use super::rows::{HF_TRANSFORMERS, TRANSFORMERS_MODULES};
use super::semantics::{Modules, NormModule, Rotation, Semantics};
use crate::adapters::AdapterLibrary;
use crate::kernels::LossKind;

/// litgpt (`model.py`, `finetune/full.py`, `finetune/lora.py`, `utils.py:chunked_cross_entropy`). Lightning's plugin
/// replaces every linear layer, and passes weights to bitsandbytes in fp16
/// (`fabric/plugins/precision/bitsandbytes.py:_Linear4bit.quantize`).
pub(super) const LITGPT: Semantics = Semantics {
    modules: Modules {
        name: "litgpt",
        norm: NormModule::Widened,
        rotation: Rotation::Whole,
        repeats_groups: true,
        adapters: AdapterLibrary::Litgpt,
        joins_projections: true,
        masks_every_window: true,
        quantizes_output: true,
        unpacks_in_fp16: true,
        casts_weights_once: true,
        drops_gradients: true,
        ..TRANSFORMERS_MODULES
    },
    loss: Some(LossKind::ChunkedRows),
    fsdp_fp32_shards: false,
    ..HF_TRANSFORMERS
};

/// litgpt's pre-training (`pretrain.py:main`, `fit`): the sharded model is compiled, whose graph breaks at every block that FSDP
/// wraps, and its targets are the tokens one further on.
pub(super) const LITGPT_PRETRAIN: Semantics = Semantics {
    modules: Modules {
        name: "litgpt pretrain",
        compiles_whole: true,
        labels_come_moved: true,
        ..LITGPT.modules
    },
    ..LITGPT
};
