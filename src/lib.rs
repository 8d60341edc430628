//! Shardscope's engine: from a launch script to memory, communication and time, each number explained.
