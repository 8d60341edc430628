//! The kinds of value that settings hold, and word lists that several of them share.

/// What a setting may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    /// A whole number with its least and greatest value.
    Count(u64, u64),
    /// A real number with its least and greatest value.
    Real(f64, f64),
    /// Yes or no.
    Flag,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// Several whole numbers.
    Counts,
    /// Several words.
    Words,
}

/// Number formats that a setting may name.
pub(super) const DTYPES: &[&str] = &["fp32", "bf16", "fp16", "fp8"];

/// Optimizers whose states are known (`megatron/training/arguments.py`, `transformers/training_args.py:OptimizerNames`).
pub(super) const OPTIMIZERS: &[&str] = &[
    "adam",
    "sgd",
    "muon",
    "dist_muon",
    "lion",
    "soap",
    "adam_mini",
    "adamw_kahan",
    "adaptive_muon",
    "adamw_32bit",
    "adamw_8bit",
    "paged_adamw",
    "paged_adamw_8bit",
    "adamw_4bit",
    "adamw_fp8",
    "lion_8bit",
    "lion_32bit",
    "paged_lion",
    "paged_lion_8bit",
    "adafactor",
    "adagrad",
    "rmsprop",
    "rmsprop_8bit",
    "rmsprop_32bit",
    "galore",
    "galore_8bit",
    "apollo",
    "apollo_svd",
    "ademamix",
    "ademamix_8bit",
    "paged_ademamix",
    "paged_ademamix_8bit",
    "lomo",
    "grokadamw",
    "schedule_free",
    "schedule_free_sgd",
    "stable_adamw",
    "came",
    "shampoo",
    "other",
];
