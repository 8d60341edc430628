//! What the tools of the user's own run printed: its log as pasted, and the figures of files. None of it is launch text, so that
//! no reader of launch texts ever sees it.

use std::rc::Rc;

use shardscope_measured::{Measured, Step, pace};

/// The name under which links and stores keep the pasted log, behind the launch texts.
pub const LOG: &str = "training.log";
/// Most files whose figures are kept: one for each rank of a node, and some of other tools.
pub const MOST_FILES: usize = 32;

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnRun {
    /// Output of tools as pasted; empty if there is none.
    pub log: Rc<str>,
    /// The figures of `log`; `None` while it is still to be read.
    pub read: Option<Rc<[Measured]>>,
    /// Files that were read. Their bytes are not kept, as a snapshot may have hundreds of megabytes.
    pub files: Vec<OwnFile>,
}

/// The figures of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Its name.
    pub name: String,
    /// One for each tool whose output it has.
    pub found: Vec<Measured>,
}

impl OwnRun {
    /// The same with another log, which is still to be read.
    #[must_use]
    pub fn with_log(&self, text: &str) -> Self {
        // Blank lines alone are no log.
        let log = if text.trim().is_empty() { Rc::default() } else { Rc::from(text) };
        let read = self.read.clone().filter(|_| log == self.log);
        Self { log, read, files: self.files.clone() }
    }

    /// The same with figures of a file; a file of the same name was an earlier version of it. The oldest give way beyond
    /// [`MOST_FILES`].
    #[must_use]
    pub fn with_file(&self, file: OwnFile) -> Self {
        let mut own = self.without_file(&file.name);
        own.files.push(file);
        if own.files.len() > MOST_FILES {
            own.files.remove(0);
        }
        own
    }

    /// The same without the file `name`.
    #[must_use]
    pub fn without_file(&self, name: &str) -> Self {
        let files = self.files.iter().filter(|file| file.name != name).cloned().collect();
        Self { files, ..self.clone() }
    }

    /// Whether the log is still to be read.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        !self.log.is_empty() && self.read.is_none()
    }

    /// Whether nothing was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.log.is_empty() && self.files.is_empty()
    }

    /// All figures, each with the name of its file; that of the pasted log is empty.
    pub fn found(&self) -> impl Iterator<Item = (&str, &Measured)> {
        let log = self.read.iter().flat_map(|found| found.iter()).map(|one| ("", one));
        log.chain(self.files.iter().flat_map(|file| file.found.iter().map(|one| (file.name.as_str(), one))))
    }

    /// The time of a step by the tools that time a run undisturbed.
    #[must_use]
    pub fn step(&self) -> Option<Step> {
        pace(self.found().map(|(_, one)| one))
    }
}

impl OwnFile {
    /// The file as a text, for [`Self::parse`]: its name, then a line for each tool.
    pub(super) fn written(&self) -> String {
        // A file's name may have a line end, which would end it here.
        let name = self.name.replace(['\n', '\r'], " ");
        std::iter::once(name).chain(self.found.iter().map(Measured::written)).collect::<Vec<_>>().join("\n")
    }

    /// Reads what [`Self::written`] wrote, from an untrusted store; `None` without a figure that makes sense.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let name = lines.next()?.to_owned();
        let found: Vec<Measured> = lines.filter_map(Measured::parse).collect();
        (!found.is_empty()).then_some(Self { name, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, seconds: f64) -> OwnFile {
        let text = format!(" iteration 1/ 9 | elapsed time per iteration (ms): {} |\n", seconds * 1000.0);
        OwnFile { name: name.to_owned(), found: shardscope_measured::read(text.as_bytes()).expect("a log") }
    }

    #[test]
    fn a_log_is_read_once_and_files_replace_their_namesakes() {
        let own = OwnRun::default().with_log("a log");
        assert!(own.is_unread() && !own.is_empty());
        let read = OwnRun { read: Some(file("", 5.0).found.into()), ..own };
        assert!(!read.is_unread());
        assert_eq!(read.with_log("a log"), read, "the same text need not be read again");
        assert!(read.with_log("another").is_unread());
        assert!(read.with_log(" \n").is_empty());
        let both =
            read.with_file(file("a.log", 4.0)).with_file(file("b.log", 3.0)).with_file(file("a.log", 2.0));
        let names: Vec<(&str, f64)> =
            both.found().filter_map(|(name, one)| Some((name, one.step?.seconds))).collect();
        assert_eq!(names, [("", 5.0), ("b.log", 3.0), ("a.log", 2.0)]);
        assert_eq!(both.without_file("b.log").files.len(), 1);
        let many = (0..40).fold(OwnRun::default(), |own, place| own.with_file(file(&place.to_string(), 1.0)));
        assert_eq!((many.files.len(), many.files[0].name.as_str()), (MOST_FILES, "8"));
    }

    #[test]
    fn a_stored_file_comes_back_without_figures_that_make_no_sense() {
        let whole = file("a", 1.0);
        assert_eq!(OwnFile::parse(&whole.written()), Some(whole));
        assert_eq!(OwnFile::parse("a\n0 0.0 1 - - - - -"), None);
        assert_eq!(OwnFile::parse(""), None);
    }
}
