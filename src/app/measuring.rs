//! Files given to the page that may be from the run's own tools: a worker reads them one after another, and those that are
//! none of these go on as launch texts.

use shardscope::session::beside::Measurement;
use shardscope::session::{File, OwnFile};

/// A file that a worker is to read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// The file itself, whose bytes only the worker takes.
    pub file: web_sys::File,
    /// Its text, if it is a launch text should nothing be measured in it; `None` for a file that can be none.
    pub text: Option<File>,
}

/// Files given together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub candidates: Vec<Candidate>,
    /// Launch texts for certain.
    pub texts: Vec<File>,
}

/// Files that are being read, and what became of the last ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Measuring {
    /// Still to be read, in order.
    pub candidates: Vec<Candidate>,
    /// Launch texts that wait for them: files given together make one run.
    texts: Vec<File>,
    /// Names of files that could not be read, and why.
    pub unread: Vec<(String, String)>,
}

/// Why a file is not taken up.
const NOTHING: &str = "it has no output of a tool that is read here";
/// Why a worker did not answer.
const NO_ANSWER: &str = "the part of the page that reads it did not arrive, or ran out of memory; check the connection and try again";

impl Measuring {
    pub(super) fn take(&mut self, batch: Batch) {
        // Messages belong to the files given before.
        self.unread.clear();
        self.candidates.extend(batch.candidates);
        self.texts.extend(batch.texts);
    }

    /// The first file was read; returns its figures.
    pub(super) fn heard(&mut self, found: Option<Measurement>) -> Option<OwnFile> {
        if self.candidates.is_empty() {
            // Stopped meanwhile.
            return None;
        }
        let Candidate { file, text } = self.candidates.remove(0);
        let name = file.name();
        match (found, text) {
            (Some(Measurement::Found(found)), _) => return Some(OwnFile { name, found }),
            // Whatever is no measurement is a launch text; a text is not lost because a worker is.
            (Some(Measurement::Nothing) | None, Some(text)) => self.texts.push(text),
            (Some(Measurement::Refused(why)), _) => self.unread.push((name, why)),
            (Some(Measurement::Nothing), None) => self.unread.push((name, NOTHING.to_owned())),
            (None, None) => self.unread.push((name, NO_ANSWER.to_owned())),
        }
        None
    }

    /// Nothing more is read; launch texts among the files are taken up.
    pub(super) fn stop(&mut self) {
        let texts = std::mem::take(&mut self.candidates).into_iter().filter_map(|one| one.text);
        self.texts.extend(texts);
    }

    /// Whether a file is being read, or there is something to say of one.
    pub(crate) fn has_news(&self) -> bool {
        !self.candidates.is_empty() || !self.unread.is_empty()
    }

    /// The launch texts, once nothing that was given with them is still to be read.
    pub(crate) fn texts(&self) -> &[File] {
        if self.candidates.is_empty() { &self.texts } else { &[] }
    }

    /// The launch texts were passed on.
    pub(super) fn passed(&mut self) {
        self.texts.clear();
    }
}
