//! Bounds of what is read at once.

/// Maximum number of texts that are read: a training is launched by a handful of files.
pub const MAX_TEXTS: usize = 256;
