//! How much of a link is read, and what is said of one that cannot be.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Longest fragment that is read. Unit: byte. Browsers take more; chat tools cut far below.
pub const MAX_LINK: usize = 256 * 1024;

/// Most text that a link may unfold to, all files and settings together as JSON. Unit: byte.
pub const MAX_TEXT: usize = 1024 * 1024;

/// Most settings in a link, and most answers for variables; there are some 300 settings.
pub const MAX_SETTINGS: usize = 512;

/// Most texts in a link: a training is launched by a handful of files.
pub const MAX_TEXTS: usize = 256;

/// Why a link cannot be read; `Display` says it to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// More than [`MAX_LINK`]. Unit: byte.
    TooLong(usize),
    /// It carries more of these than are read.
    TooMany {
        /// In the plural.
        what: &'static str,
        /// How many it carries.
        count: usize,
        /// How many are read.
        most: usize,
    },
    /// A name or value that is no text once it is decoded, as it stands in the link.
    NotText(String),
    /// A part of it is missing or altered.
    Damaged(Damage),
    /// A form that is not known here, as a later version may write it.
    Newer,
}

/// What of a link is missing or altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A character that base64 for addresses has not.
    Character,
    /// The compressed text ends early, or is longer than [`MAX_TEXT`].
    Compression,
    /// What was compressed is no JSON.
    Json,
    /// JSON, but without a text.
    NoText,
}

impl Display for LinkError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(out, "the link is {length} bytes long; {MAX_LINK} are read"),
            Self::TooMany { what, count, most } => {
                write!(out, "the link holds {count} {what}; {most} are read")
            }
            Self::NotText(encoded) => write!(out, "'{encoded:.40}' in the link is not UTF-8 text"),
            Self::Damaged(damage) => write!(out, "the link is damaged ({damage}): copy it again, whole"),
            Self::Newer => {
                out.write_str("the link was written by a newer version of this page: reload it and try again")
            }
        }
    }
}

impl Display for Damage {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Character => "a character that no link has",
            Self::Compression => "it does not unfold, or to more than 1 MiB",
            Self::Json => "no JSON inside",
            Self::NoText => "no text inside",
        })
    }
}

impl Error for LinkError {}
