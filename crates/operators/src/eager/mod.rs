//! What modules of plain PyTorch keep for backward, as Hugging Face transformers writes them and PEFT adapts them:
//! each operation by itself, so that what is kept follows from which tensors require a gradient. Recorded runs of
//! the packages are met to the byte (`tests/data/activations/huggingface.jsonl`).
//!
//! A tensor is kept where the operation that reads it needs it for a gradient that somebody asks for: the input of a
//! linear layer for its weight's gradient, its weight (a parameter, not counted) for its input's.

mod again;
mod attention;
mod capped_scores;
mod ends;
mod experts;
mod flow;
mod fused_head;
mod joined;
mod latent;
mod linear;
mod linear_mixer;
mod manual;
mod mlp;
mod norm;
mod preferences;
mod sampled_head;
mod saved;
mod scored_states;
mod tape;
mod tiles;
mod transient;

pub use again::worked_out_again;
pub use norm::copies_layer_input;
pub(crate) use norm::is_kernel as norms_are_kernels;
pub(crate) use saved::saved;
pub(crate) use transient::transients;
