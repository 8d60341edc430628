//! What plain PyTorch modules save for backward, as written in Hugging Face transformers and adapted by PEFT:
//! operation by operation, so that what is saved follows from which tensors require a gradient. Recorded runs of the
//! packages are matched to the byte (`tests/data/activations/huggingface.jsonl`).
//!
//! A tensor is saved if the operation that reads it needs it for a gradient that is required: the input of a linear
//! layer for its weight's gradient, its weight (a parameter, not counted) for its input's.

mod again;
mod attention;
mod capped_scores;
mod completions;
mod dispatched;
mod ends;
mod exchange;
mod experts;
mod flow;
mod fused_head;
mod heads;
mod joined;
mod latent;
mod latent_norm;
mod layer_inputs;
mod linear;
mod linear_mixer;
mod loss_rows;
mod manual;
mod mlp;
mod norm;
mod paired;
mod passing;
mod policy_rows;
mod preferences;
mod responses;
mod router_loss;
mod sampled_head;
mod saved;
mod scored_states;
mod tape;
mod tiles;
mod transient;
mod uncast_norm;
mod views;
mod whole_logits;

pub use again::worked_out_again;
pub use exchange::{dispatches, exchange_buffer};
pub use norm::copies_layer_input;
pub(crate) use norm::is_kernel as norms_are_kernels;
pub(crate) use passing::passing;
pub(crate) use saved::saved;
pub(crate) use transient::transients;
