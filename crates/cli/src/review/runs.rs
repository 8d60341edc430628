//! The runs that a change affects, estimated before and after it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use shardscope::launch::minimal_settings;
use shardscope::link::{Pasted, PastedText, Shared, encode};

use crate::beside::{Places, completed};
use crate::gate::{FailOn, Figures};
use crate::input::{Changes, bytes};

/// Runs of one change that are estimated; if a change affects more, the number left out is stated.
const MOST_RUNS: usize = 50;
/// Maximum number of files searched for scripts that name a changed settings file.
const MOST_FILES: usize = 20_000;

/// Extensions of launch scripts.
const SCRIPTS: [&str; 5] = ["sh", "bash", "slurm", "sbatch", "sub"];
/// Extensions of files that a launch script names.
const SETTINGS: [&str; 5] = ["json", "yaml", "yml", "toml", "env"];
/// Those that may be a complete run.
const WHOLE: [&str; 3] = ["yaml", "yml", "toml"];

/// One run before and after.
pub(super) struct Run {
    /// Its path from the root.
    pub(super) path: String,
    /// Before the change; `None` if it did not exist.
    pub(super) before: Option<Side>,
    /// After the change; `None` if it no longer exists.
    pub(super) after: Option<Side>,
    /// Why it fails; empty if it passes.
    pub(super) failures: Vec<String>,
}

/// A run as it is in one checkout.
pub(super) enum Side {
    /// It forms a plan.
    Plan {
        /// Its figures.
        figures: Box<Figures>,
        /// The fragment of a link to it.
        fragment: Option<String>,
    },
    /// It does not form a plan; the obstacle in words.
    Open(String),
}

impl Side {
    /// The figures, if there are any.
    pub(super) fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Plan { figures, .. } => Some(figures),
            Self::Open(_) => None,
        }
    }
}

/// The runs that `changed` affects, and how many more there are.
pub(super) fn runs(
    before: &Path,
    after: &Path,
    changed: &[String],
    changes: &Changes,
    fail_on: &[FailOn],
) -> (Vec<Run>, usize) {
    let mut paths: Vec<String> = Vec::new();
    let mut named: Vec<&str> = Vec::new();
    for path in changed.iter().filter(|path| is_inside(path)) {
        if is_of(path, &SCRIPTS) {
            paths.push(path.clone());
        }
        // A script may be sourced and settings passed on, so scripts that name them are affected as well.
        if is_of(path, &SCRIPTS) || is_of(path, &SETTINGS) {
            // Scripts often spell directories through variables, so search for the base name.
            named.push(base_name(path));
        }
    }
    if !named.is_empty() {
        // After the change only: a script that the change removes is among the changed paths itself.
        let naming = naming(after, &named);
        paths.extend(naming.scripts);
        // torchtitan, axolotl and others are launched with a file of settings; one that a script names belongs to that script.
        let alone = |path: &&String| {
            is_inside(path) && is_of(path, &WHOLE) && !naming.names.contains(base_name(path))
        };
        paths.extend(changed.iter().filter(alone).cloned());
    }
    paths.sort();
    paths.dedup();
    let mut runs: Vec<Run> = Vec::new();
    let mut more = 0;
    for path in paths {
        let sides = [side(before, &path, changes), side(after, &path, changes)];
        let [was, is] = sides;
        // A script that names a changed file but resolves to the same before and after is not affected.
        let touched = changed.contains(&path) || !same(was.as_ref(), is.as_ref());
        if was.is_none() && is.is_none() || !touched {
            continue;
        }
        // Settings that do not form a plan are part of something rather than a run.
        let makes_plan = |side: &Option<Side>| side.as_ref().and_then(Side::figures).is_some();
        if is_of(&path, &WHOLE) && !makes_plan(&was) && !makes_plan(&is) {
            continue;
        }
        // Whether a run is affected is only known once both sides are estimated: the bound keeps the comment short
        // but saves no work.
        if runs.len() == MOST_RUNS {
            more += 1;
            continue;
        }
        // A run that cannot be estimated passes every gate: the comment lists it as open.
        let baseline = was.as_ref().and_then(Side::figures);
        let figures = is.as_ref().and_then(Side::figures);
        let failures = figures.map(|figures| figures.failures(fail_on, baseline)).unwrap_or_default();
        runs.push(Run { path, before: was, after: is, failures });
    }
    (runs, more)
}

fn same(before: Option<&Side>, after: Option<&Side>) -> bool {
    match (before, after) {
        (Some(Side::Plan { figures: a, fragment: from }), Some(Side::Plan { figures: b, fragment: to })) => {
            from == to && a.line() == b.line()
        }
        (Some(Side::Open(a)), Some(Side::Open(b))) => a == b,
        (None, None) => true,
        _ => false,
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a path stays below its root: a change's paths are a stranger's.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

fn is_of(path: &str, extensions: &[&str]) -> bool {
    Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| extensions.contains(&extension))
}

/// One side of a run; `None` if there is no such file or it launches nothing.
fn side(root: &Path, path: &str, changes: &Changes) -> Option<Side> {
    let file = root.join(path).canonicalize().ok()?;
    // Never follow a link out of the checkout.
    if !file.starts_with(root) || !file.is_file() {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes(file.to_str()?).ok()?).into_owned();
    let name = base_name(path).to_owned();
    let mut pasted = Pasted { texts: vec![PastedText { name, text }], ..Pasted::default() };
    changes.put_into(&mut pasted);
    let folder = file.parent().map_or_else(|| root.to_path_buf(), Path::to_path_buf);
    let places = Places { folders: vec![folder, root.to_path_buf()], within: Some(root.to_path_buf()) };
    let (mut answer, _) = completed(&mut pasted, &places);
    if !answer.launches() {
        return None;
    }
    let Some((plan, found)) = answer.estimated() else { return Some(Side::Open(answer.obstacle())) };
    let figures = Box::new(Figures::new(&plan, &found));
    let fragment = minimal_settings(&answer.resolution).map(|settings| encode(&Shared::Settings(settings)));
    Some(Side::Plan { figures, fragment })
}

/// Scripts that name files, and which files they name.
#[derive(Default)]
struct Naming<'a> {
    scripts: Vec<String>,
    names: BTreeSet<&'a str>,
}

/// Scripts below `root` that name one of these files.
fn naming<'a>(root: &Path, names: &[&'a str]) -> Naming<'a> {
    let (mut found, mut seen) = (Naming::default(), 0);
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        // Directory order is arbitrary; the bound should leave out the same files each time.
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            if seen > MOST_FILES {
                return found;
            }
            // `file_type` does not follow links, so none leads out of the checkout or in a circle.
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let path = folder.join(&name);
            // `.git` and the like contain more files than the bound.
            if kind.is_dir() && !name.to_string_lossy().starts_with('.') {
                folders.push(path);
            } else if kind.is_file() && path.to_str().is_some_and(|path| is_of(path, &SCRIPTS)) {
                let text = entry.path().to_str().and_then(|path| bytes(path).ok()).unwrap_or_default();
                // Any mention counts, even in a comment: a run that is the same before and after is dropped in
                // `runs`.
                let text = String::from_utf8_lossy(&text);
                let mut any = false;
                for name in names.iter().filter(|name| text.contains(**name)) {
                    any = true;
                    found.names.insert(name);
                }
                if any {
                    found.scripts.extend(path.to_str().map(|path| path.replace('\\', "/")));
                }
            }
        }
    }
    found
}
