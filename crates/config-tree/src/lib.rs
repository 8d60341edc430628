//! Settings files as trees of nodes with their spans: JSON as people write it, the YAML that training configurations
//! use, and TOML. Knows nothing about training; bounded in depth and size.

mod block;
mod cursor;
mod flow;
pub mod interpolate;
mod lines;
mod node;
pub mod scalar;
mod toml;
mod yaml;

pub use cursor::{MAX_DEPTH, MAX_NODES, Tree};
pub use flow::read_json;
pub use node::{Entry, Node, Scalar, Value};
pub use toml::read_toml;
pub use yaml::read_yaml;
