//! Estimators fold over operators and sections and never ask which kind one is: such questions are methods of the
//! kind. Nor do they ask which software runs: differences between software are rows of `Semantics`. The same goes for
//! schedules, search and advice.

#![allow(clippy::expect_used, reason = "a test that cannot go on should stop with the value at hand")]

use std::fs;
use std::path::{Path, PathBuf};

/// The enums whose variants only `shardscope-operators` and `shardscope-plan` may name.
const KINDS: [&str; 8] = [
    "SectionKind::",
    "Operator::",
    "MatmulKind::",
    "LayerKind::",
    "Mixer::",
    "LinearKind::",
    "FeedForward::",
    "Software::",
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            out.push(entry);
        }
    }
}

/// Variants that a line of code names. `SectionKind::Layer(kind)` with a kind from elsewhere constructs the section
/// of a layer and asks nothing; nor does assigning another software to a plan.
fn variants(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or(line);
    let mut named = Vec::new();
    for kind in KINDS {
        for (at, _) in code.match_indices(kind) {
            let whole_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = &code[at + kind.len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (variant, behind) = rest.split_at(end);
            let makes = variant == "Layer"
                && behind.starts_with('(')
                && !behind.starts_with("(_")
                && !line.contains("=>");
            // `recipe.software = Software::…` is an assignment; `==` and `!=` would ask.
            let sets = code[..at].ends_with(" = ");
            let is_variant = variant.starts_with(|c: char| c.is_uppercase())
                && variant.contains(|c: char| c.is_lowercase());
            if whole_word && is_variant && !makes && !sets {
                named.push(&code[at..at + kind.len() + end]);
            }
        }
    }
    named
}

#[test]
fn no_estimator_names_a_kind() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 30, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        // A test may construct a model of any kind.
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(&text);
        for (index, line) in code.lines().enumerate() {
            for variant in variants(line) {
                found.push(format!("{}:{} {variant}", file.display(), index + 1));
            }
        }
    }
    assert!(found.is_empty(), "what is asked here should be a method of the kind:\n{}", found.join("\n"));
}

/// Crates that work on plans of any software.
const OF_ANY_SOFTWARE: [&str; 5] = ["topology", "schedule", "report", "search", "advice"];

#[test]
fn which_software_runs_is_asked_of_its_row_alone() {
    let mut found = Vec::new();
    for name in OF_ANY_SOFTWARE {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &mut files);
        assert!(files.len() > 4, "{name}: {} files", files.len());
        for file in files {
            let text = fs::read_to_string(&file).expect("a source");
            let lines = text.lines().enumerate();
            let asking =
                lines.filter(|(_, line)| variants(line).iter().any(|one| one.starts_with("Software::")));
            found.extend(asking.map(|(index, line)| format!("{}:{} {line}", file.display(), index + 1)));
        }
    }
    assert!(found.is_empty(), "what is asked here should be a fact of the software:\n{}", found.join("\n"));
}

#[test]
fn naming_a_kind_is_seen() {
    assert_eq!(variants("if kind == SectionKind::Mtp && x {"), ["SectionKind::Mtp"]);
    assert_eq!(variants("matches!(kind, SectionKind::Layer(_))"), ["SectionKind::Layer"]);
    assert_eq!(variants("SectionKind::Layer(layer) => 1,"), ["SectionKind::Layer"]);
    assert_eq!(variants("let kind = SectionKind::Layer(layer);"), [""; 0]);
    assert_eq!(variants("if recipe.software != Software::Torchtitan {"), ["Software::Torchtitan"]);
    assert_eq!(variants("recipe.software = Software::Torchtitan;"), [""; 0]);
    assert_eq!(variants("mixer == Mixer::Windowed"), ["Mixer::Windowed"]);
    assert_eq!(variants("for kind in SectionKind::ALL { // SectionKind::Mtp"), [""; 0]);
}
