//! How much of a link is read, and what is said of one that cannot be.

/// Longest fragment that is read. Unit: byte. Browsers take more; chat tools cut far below.
pub const MAX_LINK: usize = 256 * 1024;

/// Most text that a link may unfold to. Unit: byte.
pub const MAX_TEXT: usize = 1024 * 1024;

/// Most settings in a link, and most answers for variables; there are some 300 settings.
pub const MAX_SETTINGS: usize = 512;

/// Most texts in a link: a training is launched by a handful of files.
pub const MAX_TEXTS: usize = 256;

/// Why a link cannot be read; a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(pub String);
