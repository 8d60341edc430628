//! The rows for trainers written in JAX.

use super::rows::{TORCH_FSDP, TRANSFORMERS_MODULES};
use super::semantics::{EndsGathered, HostIssue, Modules, Semantics};

/// MaxText (`src/maxtext/trainers/pre_train/train.py`): one compiled program per step, in which XLA's partitioner
/// gathers weights and scatters gradients layer by layer; weights and Adam's moments are its fp32 arguments
/// (`tests/data/maxtext`).
pub(super) const MAXTEXT: Semantics = Semantics {
    compiled_step: true,
    logits_gradient_waits: true,
    cuts_models: false,
    keeps_unquantized_inputs: false,
    fsdp_wraps_ends: false,
    // In a step that is one program, what comes after the layers stays gathered, because its backward is next.
    ends_gathered: EndsGathered::AfterLayers,
    issue: HostIssue::Compiled,
    // Gradients are values of the program, which ends with the step.
    modules: Modules { name: "MaxText", drops_gradients: true, ..TRANSFORMERS_MODULES },
    ..TORCH_FSDP
};

/// levanter (`src/levanter/trainer.py`), compiled and partitioned likewise, but for the output layer's weight gradient; the
/// scan adds gradients up in bf16, where MaxText casts them (`tests/data/levanter`).
pub(super) const LEVANTER: Semantics = Semantics {
    logits_gradient_waits: false,
    gradients_as_computed: true,
    modules: Modules { name: "levanter", ..MAXTEXT.modules },
    ..MAXTEXT
};
