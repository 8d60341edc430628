//! Shared by all parts of the reader: the origin of defaults, and what stops the verdict.

/// The origin of defaults.
pub(super) const WHOSE: &str = "base.yml of MaxText";
