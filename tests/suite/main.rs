//! The engine against data, one module per topic.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::cast_possible_truncation)]

mod analysis_tool;
mod buffers;
mod drafts;
mod flops;
mod formula;
mod models;
mod parameters;
mod random;
mod resolve;
mod rows;
mod saved;
mod schedule;
mod settings_tree;
mod time;
mod topology;
mod traffic;
mod traffic_walk;
mod utilisation;
