//! Limits on the cost of evaluation: far above every real script (the largest of 2,700 has 40 kB), and low enough
//! that hostile text is stopped at once.

/// Longest text read, in bytes.
pub const TEXT_BYTES: usize = 4 << 20;
/// Parts of words and commands parsed in one script, evaluated text included.
pub(crate) const TREE_NODES: u32 = 150_000;
// A statement that cannot be read is read until it fails and then again from its next line, so a text of unclosed
// quotes would cost the square of its length; this bounds it.
/// Bytes of unreadable statements allowed in any text, on top of four times its length.
pub(crate) const WASTE_BYTES: usize = 64 << 10;
/// Nesting of commands, quotes and expansions, and of calls while evaluating.
pub const DEPTH: u32 = 80;
/// Commands run and words expanded, weighted by the pieces they copy.
pub const STEPS: u32 = 60_000;
/// Longest single value, in bytes.
pub const VALUE_BYTES: usize = 256 << 10;
/// Elements of one array, words of one expansion.
pub const WORDS: usize = 4096;
/// Commands recorded.
pub(crate) const COMMANDS: usize = 2000;
/// Diagnostics recorded; more would help nobody.
pub(crate) const DIAGNOSTICS: usize = 100;
/// Functions known at once.
pub(crate) const FUNCTIONS: usize = 1000;
/// Branches recorded.
pub(crate) const BRANCHES: usize = 500;
/// Distinct unknowns.
pub(crate) const HOLES: usize = 4000;
/// How often the body of a `while true` runs if every iteration decides whether it ends.
pub(crate) const CONSTANT_TURNS: u32 = 500;
/// How often the body of one loop runs.
pub const LOOP_TURNS: u32 = 5000;
/// Skipped branches that are evaluated anyway.
pub(crate) const PEEKS: u32 = 16;
/// Steps for each of them.
pub(crate) const PEEK_STEPS: u32 = 1000;
