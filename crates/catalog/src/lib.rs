//! Known hardware, models and tokenizers as typed rows, each with its source.

mod hardware;
mod hub;
mod models;
mod platforms;
mod rows;
mod shape;
mod tokenizers;
mod tuned;

pub use hardware::{
    DEFAULT_ACCELERATOR, DEFAULT_TPU, accelerator, accelerator_in, accelerator_names, cluster,
    default_accelerator, is_slice, is_turing, usual_gpus_per_node,
};
pub use hub::tables;
pub use models::{
    Model, Named, checkpoint_dtype, config_address, find, hub_names, model, model_names, of_config,
    vocabulary_of_attention, vocabulary_of_shape,
};
pub use platforms::{Platform, platform, platforms};
pub use shape::settings as settings_of;
pub use tokenizers::vocabulary;
pub use tuned::tuned_from;
