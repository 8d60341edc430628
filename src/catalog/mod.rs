//! Known hardware, models and tokenizers as typed rows, each with its source.

mod hardware;

pub use hardware::{DEFAULT_ACCELERATOR, accelerator, accelerator_names, cluster, usual_gpus_per_node};
