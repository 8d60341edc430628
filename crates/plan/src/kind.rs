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
