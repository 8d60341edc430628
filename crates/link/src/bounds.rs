//! How much of a link is read, and the errors for links that cannot be read.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Longest fragment that is read. Unit: byte. Browsers accept more; chat tools truncate much earlier.
pub const MAX_LINK: usize = 256 * 1024;

/// Most text that a link may decompress to, all files and settings together as JSON. Unit: byte.
pub const MAX_TEXT: usize = 1024 * 1024;

/// Most settings in a link, and most answers for variables; there are some 300 settings.
pub const MAX_SETTINGS: usize = 512;

/// Most texts in a link: a training is launched by a handful of files.
pub const MAX_TEXTS: usize = 256;

/// Why a link cannot be read; `Display` gives the message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// More than [`MAX_LINK`]. Unit: byte.
    TooLong(usize),
    /// It carries more of these than are read.
    TooMany {
        /// Their name, in the plural.
        what: &'static str,
        /// How many the link carries.
        count: usize,
        /// How many are read.
        most: usize,
    },
    /// A name or value, as encoded in the link, that does not decode to text.
    NotText(String),
    /// A part of it is missing or altered.
    Damaged(Damage),
    /// An unknown form, perhaps written by a later version.
    Newer,
}

/// What in a link is missing or altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A character outside of base64url.
    Character,
    /// The compressed text ends early, or is longer than [`MAX_TEXT`].
    Compression,
    /// The decompressed data is not JSON.
    Json,
    /// JSON, but without a text.
    NoText,
}

impl Display for LinkError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => {
                write!(out, "the link is {length} bytes long; at most {MAX_LINK} are read")
            }
            Self::TooMany { what, count, most } => {
                write!(out, "the link holds {count} {what}; at most {most} are read")
            }
            Self::NotText(encoded) => write!(out, "'{encoded:.40}' in the link is not UTF-8 text"),
            Self::Damaged(damage) => write!(out, "the link is damaged ({damage}): copy all of it again"),
            Self::Newer => {
                out.write_str("the link was written by a newer version of this page: reload it and try again")
            }
        }
    }
}

impl Display for Damage {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Character => "an invalid character",
            Self::Compression => "it does not decompress, or to more than 1 MiB",
            Self::Json => "no JSON inside",
            Self::NoText => "no text inside",
        })
    }
}

impl Error for LinkError {}
