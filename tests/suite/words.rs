//! Terms that the page explains in place are in the glossary, and vice versa.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shardscope::explain::{glossary, meaning};

/// The Rust files in `folder` and below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder of the page") {
        let path = entry.expect("an entry").path();
        match path.extension() {
            _ if path.is_dir() => files.extend(sources(&path)),
            Some(extension) if extension == "rs" => files.push(path),
            _ => {}
        }
    }
    files
}

/// Every literal after `before` in `source`.
fn literals<'a>(source: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    source.split(before).skip(1).filter_map(|behind| behind.split('"').next())
}

/// Names that the page takes from the engine: kinds of memory and parts of a step that are themselves terms, and those
/// of the knobs.
const GIVEN: [&str; 7] =
    ["parameters", "gradients", "activations", "temporaries", "recompute", "micro-batch", "sequence"];

#[test]
fn terms_of_the_page_are_in_the_glossary_and_those_for_the_page_are_on_it() {
    let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app");
    let mut asked = BTreeSet::new();
    for file in sources(&app) {
        let source = fs::read_to_string(&file).expect("a source");
        asked.extend(literals(&source, "<Term name=\"").map(str::to_owned));
        if file.ends_with("app/words.rs") {
            let (_, terms) = source.split_once("fn term_of").expect("the names of terms");
            asked.extend(literals(terms, "=> \"").map(str::to_owned));
        }
    }
    assert!(asked.len() > 25, "{asked:?}");
    for term in &asked {
        assert!(meaning(term).is_some(), "the glossary does not have {term:?} for the page");
    }
    asked.extend(GIVEN.map(str::to_owned));
    let unasked: Vec<&str> =
        glossary().filter(|term| term.on_page && !asked.contains(term.name)).map(|term| term.name).collect();
    assert!(unasked.is_empty(), "marked for the page, which does not ask for them: {unasked:?}");
}
