//! The engine against data, one module per topic.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::cast_possible_truncation)]

mod analysis_tool;
mod buffers;
mod drafts;
mod flops;
mod formats;
mod formula;
mod memory;
mod models;
mod parameters;
mod random;
mod resolve;
mod session;
mod saved;
mod schedule;
mod settings_tree;
mod shell_bash;
mod topology;
mod traffic;
mod traffic_walk;
mod utilisation;
