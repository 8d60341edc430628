//! Known hardware, models and tokenizers as typed rows, each with its source.

mod hardware;
mod models;
mod platforms;
mod tokenizers;

pub use hardware::{
    DEFAULT_ACCELERATOR, accelerator, accelerator_in, accelerator_names, cluster, default_accelerator,
    usual_gpus_per_node,
};
pub use models::{Model, Named, find, model, model_names};
pub use platforms::{Platform, platform, platforms};
pub use tokenizers::vocabulary;
