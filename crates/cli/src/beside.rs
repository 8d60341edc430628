//! Files that a launch script names and that are next to it: settings files that it passes on, scripts that it
//! sources.
//!
//! The reader's diagnostics determine which files are wanted, so nothing is read that the run does not read.

use std::path::{Path, PathBuf};

use shardscope::link::{Pasted, PastedText};
use shardscope::source::{Code, Source, Span};

use crate::answer::{Answer, answer};
use crate::files::bytes;

/// Maximum number of files fetched for one run.
const MOST: usize = 16;
/// Maximum number of rounds: a fetched file may name others.
const ROUNDS: usize = 3;

/// Where such files may be.
pub(crate) struct Places {
    /// Directories that names are relative to, in order of priority.
    pub(crate) folders: Vec<PathBuf>,
    /// The directory that must not be left: a stranger's script may name anything.
    pub(crate) within: Option<PathBuf>,
}

impl Places {
    /// The directory of each file, and the current directory.
    pub(crate) fn new(files: &[String]) -> Self {
        let folder = |file: &String| Path::new(file).parent().map(Path::to_path_buf);
        // Standard input has no directory.
        let mut folders: Vec<PathBuf> = files.iter().filter(|file| *file != "-").filter_map(folder).collect();
        // Last: names in a script are mostly relative to the script, sometimes to the current directory.
        folders.push(PathBuf::from("."));
        Self { folders, within: None }
    }

    /// The file called `name`, if there is one and it may be read.
    fn find(&self, name: &str) -> Option<String> {
        for folder in &self.folders {
            // Resolved first, so that neither `..` nor a link leads out of `within` unseen.
            let Ok(path) = folder.join(name).canonicalize() else { continue };
            let inside = self.within.as_ref().is_none_or(|within| path.starts_with(within));
            if inside && path.is_file() {
                return path.to_str().map(str::to_owned);
            }
        }
        None
    }
}

/// The answer to `pasted`, completed by the files that its texts name and that are at `places`; returns their names
/// too.
pub(crate) fn completed(pasted: &mut Pasted, places: &Places) -> (Answer, Vec<String>) {
    let mut fetched: Vec<String> = Vec::new();
    let mut found = answer(pasted);
    for _ in 0..ROUNDS {
        let mut more = false;
        for name in wanted(&found) {
            // A file fetched twice, or an endless chain, would keep the rounds going.
            if fetched.len() == MOST || fetched.contains(&name) {
                continue;
            }
            let Some(text) = places.find(&name).and_then(|path| bytes(&path).ok()) else { continue };
            let last = name.rsplit('/').next().unwrap_or(&name).to_owned();
            // A file given by hand wins over the one next to the script.
            if pasted.texts.iter().any(|text| text.name == last) {
                continue;
            }
            pasted.texts.push(PastedText { name: last, text: String::from_utf8_lossy(&text).into_owned() });
            fetched.push(name);
            more = true;
        }
        if !more {
            break;
        }
        // Read again with the new files, which may name others.
        found = answer(pasted);
    }
    (found, fetched)
}

/// Names of files in a text: words with an extension. Variables are followed by the reader, not here.
fn named(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || "\"'=;{}".contains(c));
    let words = words.map(|word| word.trim_start_matches("./"));
    // A word with `$` is a name only after evaluation, which the reader has done if it could.
    words.filter(|word| word.contains('.') && !word.contains('$')).map(str::to_owned).collect()
}

/// The word after a place, on its line or on one joined by a backslash.
fn behind(source: &Source, span: Span) -> &str {
    let rest = source.text().get(span.end as usize..).unwrap_or_default();
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n' || "=\"'".contains(c));
    let rest = rest.strip_prefix("\\\n").unwrap_or(rest).trim_start_matches([' ', '\t']);
    rest.split(char::is_whitespace).next().unwrap_or_default()
}

/// Names of files that the diagnostics point at as missing.
fn wanted(answer: &Answer) -> Vec<String> {
    let mut names = Vec::new();
    for said in &answer.resolution.diagnostics {
        // By code: only these point at something that a file could provide.
        if !matches!(said.code, Code::MissingFile | Code::OpenValue) {
            continue;
        }
        let Some(span) = said.span else { continue };
        let found = named(answer.source.slice(span));
        // Where the diagnostic points at the option, its value is the next word.
        let found = if found.is_empty() { named(behind(&answer.source, span)) } else { found };
        for name in found {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
