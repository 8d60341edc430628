//! Every word that the page shows stands in `src/app/words/`: a view that holds a sentence of its own fails here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shardscope::explain::{GLOSSARY, meaning};

/// A literal with the code of its line before it.
struct Literal {
    line: usize,
    before: String,
    text: String,
}

/// The Rust files below `folder`.
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
    files.sort();
    files
}

/// The string literals of `source` outside its remarks.
fn literals(source: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let mut rest = line;
        let mut before = String::new();
        while let Some(at) = rest.find(['"', '/']) {
            let (code, behind) = rest.split_at(at);
            before.push_str(code);
            if behind.starts_with("//") {
                break;
            }
            let inside = behind.strip_prefix('"').filter(|_| !before.ends_with('\''));
            let Some(inside) = inside else {
                before.push_str(&behind[..1]);
                rest = &behind[1..];
                continue;
            };
            // No literal of the page goes over a line's end; an escaped quote does not end one.
            let mut escaped = false;
            let end = inside.char_indices().find(|(_, letter)| {
                let ends = *letter == '"' && !escaped;
                escaped = *letter == '\\' && !escaped;
                ends
            });
            let (end, _) = end.unwrap_or_else(|| panic!("an open literal: {line}"));
            let text = inside[..end].to_owned();
            found.push(Literal { line: index + 1, before: before.clone(), text });
            before.push_str("\"\"");
            rest = &inside[end + 1..];
        }
    }
    found
}

/// What the page hands to the browser as an attribute that a reader sees or hears.
const SHOWN: [&str; 5] = ["aria-label", "title", "placeholder", "alt", "aria-roledescription"];

/// Keys, elements and names of others that begin with a capital.
const NAMES: [&str; 14] = [
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "ArrowDown",
    "Home",
    "End",
    "Enter",
    "Escape",
    "FORM",
    "DETAILS",
    "INPUT",
    "SELECT",
    "TEXTAREA",
    "Z",
];

/// Classes that stand without an element before them.
const CLASSES: [&str; 9] = [
    "number strong",
    "diagnostic error",
    "diagnostic warning",
    "diagnostic note",
    "stage-value {0}",
    "partner {0}",
    "wire {0} {1}",
    "dot {0}",
    "cell {0}{1}",
];

/// Names and signs that are the same in every language.
const UNTRANSLATED: [&str; 4] = ["Shardscope", " · ", "n0_g0", " GiB"];

/// Whether the form of `text` says that it is a word or a sentence.
fn is_sentence(text: &str) -> bool {
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let name = text.split(['.', '#']).next().unwrap_or_default();
    let shape = name.len() < text.len()
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && !text.ends_with('.');
    let one = !text.contains(' ');
    let capital = text.starts_with(|first: char| first.is_ascii_uppercase());
    let code = |byte: u8| byte.is_ascii_digit() || b"{}_/#?=\\[]:^*@<>".contains(&byte);
    // One lower word names an attribute, an event, an id; where it is shown, the place of it tells.
    let coded = one && (!capital || text.bytes().any(code) || text.contains('-'));
    let drawing = text.split(' ').all(|word| word.bytes().all(|byte| byte.is_ascii_digit() || code(byte)));
    let path = text.starts_with('M')
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"MmLlHhVvAaCcSsZz .,-".contains(&byte));
    // A selector of the browser or of a style sheet.
    let selector = text.starts_with(['.', '#', '(']) || text.contains("[href");
    letters
        && !shape
        && !coded
        && !drawing
        && !path
        && !selector
        && !NAMES.contains(&text)
        && !CLASSES.contains(&text)
        && !UNTRANSLATED.contains(&text)
}

/// Whether the code before a literal shows it whatever its form.
fn is_shown(before: &str) -> bool {
    let before = before.trim_end();
    let attribute = || before.ends_with("\"\",") && (before.contains(".set(") || before.contains(".with("));
    before.ends_with(".text(")
        || before.ends_with(".say(")
        || (attribute() && before.ends_with(".with(\"\","))
}

#[test]
fn views_hold_no_words_of_their_own() {
    let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app");
    let (mut seen, mut faults) = (0, Vec::new());
    for file in sources(&app) {
        if file.starts_with(app.join("words")) {
            continue;
        }
        let source = fs::read_to_string(&file).expect("a source");
        let all = literals(&source);
        for (index, literal) in all.iter().enumerate() {
            seen += 1;
            let named = index.checked_sub(1).and_then(|before| all.get(before));
            let of_attribute = literal.before.ends_with(".set(\"\", ")
                && named.is_some_and(|name| SHOWN.contains(&name.text.as_str()));
            let words = literal.text.replace("\\n", "");
            let bare = words.bytes().any(|byte| byte.is_ascii_alphabetic())
                && !UNTRANSLATED.contains(&literal.text.as_str())
                && (is_shown(&literal.before) || of_attribute);
            if bare || is_sentence(&literal.text) {
                let file = file.strip_prefix(&app).expect("below it").display();
                faults.push(format!("{file}:{}: {:?}", literal.line, literal.text));
            }
        }
    }
    assert!(seen > 500, "only {seen} literals were found in the page");
    assert!(faults.is_empty(), "belongs into src/app/words/en.rs:\n{}", faults.join("\n"));
}

/// The words of the page.
fn english() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/app/words/en.rs");
    fs::read_to_string(file).expect("the words")
}

#[test]
fn terms_of_the_page_are_in_the_glossary_and_those_for_the_page_are_on_it() {
    let english = english();
    let (before, names) = english.split_once("pub(crate) const NAMED").expect("the names");
    let (names, behind) = names.split_once("\";").expect("their end");
    let mut asked = BTreeSet::new();
    for literal in literals(before).into_iter().chain(literals(behind)) {
        for marked in literal.text.split('[').skip(1) {
            let marked = marked.split(']').next().expect("a term");
            asked.insert(marked.split('|').next_back().expect("its name").to_owned());
        }
    }
    assert!(asked.len() > 15, "{asked:?}");
    for line in names.lines().skip(1) {
        let (_, term) = line.split_once('=').unwrap_or_else(|| panic!("no term: {line}"));
        asked.insert(term.to_owned());
    }
    for term in &asked {
        assert!(meaning(term).is_some(), "the glossary does not have {term} for the page");
    }
    // Names that are terms themselves.
    asked.extend(
        ["parameters", "gradients", "activations", "temporaries", "recompute", "micro-batch"]
            .map(str::to_owned),
    );
    for term in GLOSSARY.iter().filter(|term| term.on_page) {
        assert!(asked.contains(term.name), "{} weighs and is nowhere on the page", term.name);
    }
}

#[test]
fn sentences_are_told_from_shapes_and_names() {
    for sentence in [
        "Memory per GPU",
        "Search",
        "at line and column ",
        "{0} per GPU",
        " × {0} equal",
        "As the system",
        "GPUs",
        "No such GPU: labels run from n0_g0 to {0}.",
    ] {
        assert!(is_sentence(sentence), "{sentence}");
    }
    for code in [
        "section.panel map#map",
        "h2#search-title",
        "aria-label",
        "viewBox",
        "0 0 16 16",
        "M8 10V2M5 4.8L8 1.8l3 3",
        ".map-frame svg",
        "n0_g0",
        "Llama-3-70B",
        "image/svg+xml",
        "ArrowLeft",
        "0 0 {0} {1}",
        "{0}?embed=verdict#{1}",
    ] {
        assert!(!is_sentence(code), "{code}");
    }
    let found = literals("tag(\"p.x\").text(\"why\") // \"not this\"");
    assert_eq!(found.len(), 2);
    assert!(!is_shown(&found[0].before) && is_shown(&found[1].before));
    assert!(is_shown(&literals("x.with(\"h3\", \"why\")")[1].before));
}
