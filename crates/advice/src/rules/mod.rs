//! The rules.

pub(super) mod best_change;
pub(super) mod deep_bubble;
pub(super) mod evaluation_batch;
pub(super) mod expert_dispatcher;
pub(super) mod experts_cross_network;
pub(super) mod fp8;
pub(super) mod lower_tensor;
pub(super) mod optimizer_not_sharded;
pub(super) mod out_of_memory;
pub(super) mod pipeline_inside_data_outside;
pub(super) mod recompute_too_much;
pub(super) mod sequence_parallel_off;
pub(super) mod tensor_leaves_domain;
pub(super) mod unfused_attention;

/// Fraction of a step that a change must save to be mentioned.
const WORTH: f64 = 0.03;
