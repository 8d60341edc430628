//! What each model type of the transformers library is made of, as data: from a `config.json` its parameters,
//! exactly as the library counts them, its shape, and what of it the engine has no layers for.
//!
//! `rules.txt` states every model type by what sets it apart from its parent; `defaults.txt` what its
//! configuration may leave out. A new model type is a few lines there and no code.

mod architecture;
mod evaluate;
mod expression;
mod gap;
mod megatron;
mod pair;
mod read_shape;
mod rules;
mod shape;
mod tower;
mod value;

pub use architecture::{Architecture, Refusal};
pub use evaluate::{Stop, Used};
pub use gap::Gap;
pub use pair::encoder_decoder;
pub use rules::{model_types, tables};
pub use shape::{Arrangement, EncoderShape, Latent, Linear, Parts, Routed, Shape};
pub use tower::Tower;
