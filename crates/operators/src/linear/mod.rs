//! Mixers whose work grows with the sequence's length alone: linear attention and state-space layers. Each kind is a
//! file with what it weighs, keeps and computes; what their passes hold and send is the same for all.

mod gated_delta_net;
mod kimi_delta;
mod kinds;
mod mamba;
mod mamba2;
mod messages;
mod parts;
mod short_convolution;
mod transient;

pub use kinds::linear_as_megatron_counts;
pub(super) use kinds::{saved, weights, work};
pub(super) use messages::messages;
pub(super) use parts::CHUNK;
pub(super) use transient::transients;
