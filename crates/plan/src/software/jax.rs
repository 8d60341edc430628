//! The rows for trainers written in JAX.

use super::rows::{TORCH_FSDP, TRANSFORMERS_MODULES};
use super::semantics::{HostIssue, Modules, Semantics};

/// MaxText (`src/maxtext/trainers/pre_train/train.py`): one compiled program per step, in which XLA's partitioner
/// gathers weights and scatters gradients layer by layer; weights and Adam's moments are its fp32 arguments
/// (`tests/data/maxtext`).
pub(super) const MAXTEXT: Semantics = Semantics {
    compiled_step: true,
    cuts_models: false,
    keeps_unquantized_inputs: false,
    fsdp_wraps_ends: false,
    issue: HostIssue::Compiled,
    // Gradients are values of the program, which ends with the step.
    modules: Modules { name: "MaxText", drops_gradients: true, ..TRANSFORMERS_MODULES },
    ..TORCH_FSDP
};
