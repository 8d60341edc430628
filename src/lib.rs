//! Shardscope's engine: from a launch script to memory, communication and time, each number explained.

pub mod advice;
pub mod anatomy;
pub mod catalog;
pub mod estimate;
pub mod explain;
pub mod intake;
pub mod json;
pub mod plan;
pub mod quantity;
pub mod report;
pub mod schedule;
pub mod search;
pub mod session;
pub mod share;
pub mod text;
pub mod topology;
