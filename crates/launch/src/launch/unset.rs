//! Options in variables that a script does not set: those of its caller, or of files that it reads and that are not here.

use shardscope_bash::{Hole, HoleId, HoleKind, Script, Word, base_name};
use shardscope_source::{Code, Diagnostic, Span};

/// Whether a sourced file may set options: Python environments and environment modules do not.
pub(super) fn matters(name: &str) -> bool {
    ![
        "activate",
        ".bashrc",
        ".bash_profile",
        "conda.sh",
        "modules",
        "/etc/profile",
        "setvars",
        "set_env",
        "/init/",
    ]
    .iter()
    .any(|known| name.contains(known))
}

/// What is said of them. Without a file that may set them they are the caller's, and taken for none.
pub(super) fn said(unset: &[String], script: &Script, command: Option<Span>) -> Option<Diagnostic> {
    let [name, more @ ..] = unset else { return None };
    let (names, are, it) =
        if more.is_empty() { (name.clone(), "is", "it is") } else { (unset.join(", "), "are", "they are") };
    // A file of slime's `scripts/models` sets the shape alone, which the checkpoint's name gives as well.
    let sets = |name: &&str| matters(name) && !name.contains("models/");
    let read = script.missing_files.iter().map(|(name, _)| name.as_str()).filter(sets);
    let mut files: Vec<&str> = read.map(base_name).collect();
    files.dedup();
    let said = if files.is_empty() {
        let message = format!("{names} {are} used as options and not set in this text; {it} read as empty");
        Diagnostic::note(Code::UnsetOptions, message)
    } else {
        let files = files.join(", ");
        let message = format!(
            "{names} {are} used as options and not set in this text, which reads files that are not here: {files}"
        );
        let hint =
            format!("paste or drop them as well; if none of them sets {name}, write {name}= into the text");
        Diagnostic::error(Code::UnsetOptions, message).hint(hint)
    };
    Some(said.at_some(command))
}

/// Whether the word is a variable, set nowhere, that is called as a file of settings is.
pub(super) fn names_settings(script: &Script, word: &Word) -> bool {
    let of_file =
        |name: &str| ["config", "cfg", "yaml", "json", "recipe"].iter().any(|part| name.contains(part));
    let of_options =
        |name: &str| ["arg", "opt", "flag", "param", "override"].iter().any(|part| name.contains(part));
    lone(script, word).is_some_and(|(_, hole)| {
        let name = hole.name.to_ascii_lowercase();
        of_file(&name) && !of_options(&name)
    })
}

/// An unset variable, if the word is nothing else.
pub(super) fn lone<'s>(script: &'s Script, word: &Word) -> Option<(HoleId, &'s Hole)> {
    let id = word.value.only_hole()?;
    let hole = script.hole(id)?;
    matches!(hole.kind, HoleKind::Variable | HoleKind::Branch).then_some((id, hole))
}
