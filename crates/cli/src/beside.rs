//! Files that a launch script names and that lie beside it: settings it hands on, scripts it sources.
//!
//! Which files are wanted is told by the reader's diagnostics, so nothing is read that the run does not read.

use std::path::{Path, PathBuf};

use shardscope::link::{Pasted, PastedText};
use shardscope::source::Code;

use crate::answer::{Answer, answer};
use crate::files::bytes;

/// Files that are fetched at most for one run.
const MOST: usize = 16;
/// Rounds at most: a file fetched may name others.
const ROUNDS: usize = 3;

/// Where such files may lie.
pub(crate) struct Places {
    /// Folders from which names are followed, the first first.
    pub(crate) folders: Vec<PathBuf>,
    /// The folder that must not be left: a stranger's script may name anything.
    pub(crate) within: Option<PathBuf>,
}

impl Places {
    /// The folder of each file, and the one in which the program was called.
    pub(crate) fn of(files: &[String]) -> Self {
        let folder = |file: &String| Path::new(file).parent().map(Path::to_path_buf);
        let mut folders: Vec<PathBuf> = files.iter().filter(|file| *file != "-").filter_map(folder).collect();
        folders.push(PathBuf::from("."));
        Self { folders, within: None }
    }

    /// The file that `name` names, if there is one and it may be read.
    fn find(&self, name: &str) -> Option<String> {
        for folder in &self.folders {
            let Ok(path) = folder.join(name).canonicalize() else { continue };
            let inside = self.within.as_ref().is_none_or(|within| path.starts_with(within));
            if inside && path.is_file() {
                return path.to_str().map(str::to_owned);
            }
        }
        None
    }
}

/// The answer to `pasted`, completed by what its texts name and what lies at `places`; the names of what was fetched.
pub(crate) fn completed(pasted: &mut Pasted, places: &Places) -> (Answer, Vec<String>) {
    let mut fetched: Vec<String> = Vec::new();
    let mut found = answer(pasted);
    for _ in 0..ROUNDS {
        let mut more = false;
        for name in wanted(&found) {
            if fetched.len() == MOST || fetched.contains(&name) {
                continue;
            }
            let Some(text) = places.find(&name).and_then(|path| bytes(&path).ok()) else { continue };
            let last = name.rsplit('/').next().unwrap_or(&name).to_owned();
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
        found = answer(pasted);
    }
    (found, fetched)
}

/// Names of files that the diagnostics point at as missing.
fn wanted(answer: &Answer) -> Vec<String> {
    let mut names = Vec::new();
    for said in &answer.resolution.diagnostics {
        if !matches!(said.code, Code::MissingFile | Code::OpenValue) {
            continue;
        }
        let Some(span) = said.span else { continue };
        let words = answer.source.slice(span).split(|c: char| c.is_whitespace() || "\"'=;{}".contains(c));
        for word in words.map(|word| word.trim_start_matches("./")) {
            // A name with an extension; variables are followed by the reader, not here.
            if word.contains('.') && !word.contains('$') && !names.iter().any(|known| known == word) {
                names.push(word.to_owned());
            }
        }
    }
    names
}
