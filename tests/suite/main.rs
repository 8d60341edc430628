//! The engine against data, one module per topic.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::cast_possible_truncation)]

mod accuracy;
mod advice;
mod analysis_tool;
mod buffers;
mod compare;
mod departures;
mod drafts;
mod export;
mod extremes;
mod flops;
mod formats;
mod formula;
mod hostile;
mod measured;
mod memory;
mod models;
mod parameters;
mod random;
mod resolve;
mod saved;
mod schedule;
mod search;
mod session;
mod settings_tree;
mod sharing;
mod shell_bash;
mod shell_hostile;
mod shell_scripts;
mod states;
mod time;
mod topology;
mod traffic;
mod traffic_walk;
mod utilisation;
mod words;
