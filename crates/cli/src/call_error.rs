//! Why a call cannot be answered.

use std::fmt::{self, Display, Formatter};
use std::io;

use shardscope::launch::BadValue;
use shardscope::link::LinkError;
use shardscope_measured::Unread;

/// What is wrong with a call itself; a run that does not form a plan is an answer, not an error.
#[derive(Debug)]
pub(crate) enum CallError {
    Unreadable {
        path: String,
        cause: io::Error,
    },
    /// `most`: the limit for a file. Unit: byte.
    TooLarge {
        path: String,
        most: u64,
    },
    /// The list of changed files on standard input.
    UnreadablePaths(io::Error),
    /// A file of measurements that is not read.
    Unmeasured {
        path: String,
        why: Unread,
    },
    NotUtf8 {
        path: String,
    },
    Unwritable {
        path: String,
        cause: io::Error,
    },
    Link(LinkError),
    EmptyLink,
    UnknownSetting {
        name: String,
        meant: Option<&'static str>,
    },
    UnknownAccelerator {
        name: String,
        meant: Option<&'static str>,
    },
    /// A word by which a catalog list was filtered and that is in none of its names.
    UnknownName {
        kind: &'static str,
        word: String,
        meant: Option<&'static str>,
    },
    /// A value that a setting cannot have.
    UnfitValue(BadValue),
    LinkIsNoFile,
    NoChange,
    NoFile,
    WholeOfSeveral,
    StandardInputInPlace,
    /// An option that compares, without the run to compare with.
    NothingToCompare {
        option: &'static str,
    },
    NoBaseline {
        file: String,
        obstacle: String,
    },
}

impl Display for CallError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, cause } => write!(out, "{path} cannot be read: {cause}"),
            Self::TooLarge { path, most } => {
                write!(out, "{path} is larger than {} MiB, more than is read", most >> 20)
            }
            Self::UnreadablePaths(cause) => write!(out, "the list of paths cannot be read: {cause}"),
            Self::Unmeasured { path, why } => write!(out, "{path} tells nothing: {why}"),
            Self::NotUtf8 { path } => write!(out, "{path} is not UTF-8, and is left as it is"),
            Self::Unwritable { path, cause } => write!(out, "{path} cannot be written: {cause}"),
            Self::Link(error) => error.fmt(out),
            Self::EmptyLink => out.write_str("the link carries nothing"),
            Self::UnknownAccelerator { name, meant: None } => {
                write!(out, "there is no accelerator {name}; `shardscope accelerators` lists them")
            }
            Self::UnknownAccelerator { name, meant: Some(meant) } => {
                write!(out, "there is no accelerator {name}; did you mean {meant}?")
            }
            Self::UnknownSetting { name, meant: None } => {
                write!(out, "there is no setting {name}; `shardscope settings` lists them")
            }
            Self::UnknownSetting { name, meant: Some(meant) } => {
                write!(out, "there is no setting {name}; did you mean {meant}?")
            }
            Self::UnknownName { kind, word, meant: None } => write!(out, "no {kind} has {word} in its name"),
            Self::UnknownName { kind, word, meant: Some(meant) } => {
                write!(out, "no {kind} has {word} in its name; did you mean {meant}?")
            }
            Self::UnfitValue(bad) => bad.fmt(out),
            Self::LinkIsNoFile => {
                out.write_str("a link has no file to write into; `shardscope link --open` shows its texts")
            }
            Self::NoChange => out.write_str("no change is given, such as tensor_model_parallel_size=4"),
            Self::NoFile => out.write_str("no file is given"),
            Self::WholeOfSeveral => out.write_str("--whole prints one file"),
            Self::StandardInputInPlace => {
                out.write_str("standard input cannot be written in place; leave out --in-place")
            }
            Self::NothingToCompare { option } => {
                write!(out, "{option} needs --against FILE, the run that it may not be slower than")
            }
            Self::NoBaseline { file, obstacle } => {
                write!(out, "{file}, which --against names, gives no plan: {obstacle}")
            }
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { cause, .. }
            | Self::Unwritable { cause, .. }
            | Self::UnreadablePaths(cause) => Some(cause),
            Self::Link(error) => Some(error),
            Self::UnfitValue(bad) => Some(bad),
            Self::Unmeasured { why, .. } => Some(why),
            _ => None,
        }
    }
}

impl From<BadValue> for CallError {
    fn from(bad: BadValue) -> Self {
        Self::UnfitValue(bad)
    }
}

impl From<LinkError> for CallError {
    fn from(error: LinkError) -> Self {
        Self::Link(error)
    }
}
