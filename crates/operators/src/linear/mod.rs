//! Mixers whose work grows linearly with the sequence length: linear attention and state-space layers. Each kind is a
//! file with its weights, saved tensors and arithmetic; what their passes hold and send is the same for all.

mod gated_delta_net;
mod kimi_delta;
mod kinds;
mod mamba;
mod mamba2;
mod messages;
mod parts;
mod reference_rule;
mod short_convolution;
mod transient;

pub use kinds::linear_as_megatron_counts;
pub(super) use kinds::{saved, weights, work};
pub(super) use messages::messages;
pub(super) use parts::CHUNK;
pub(super) use transient::transients;
