//! The guide is complete: it contains every formula, setting, accelerator and machine of the engine, each with its
//! source, and every link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pages::guide;
use shardscope::catalog::{accelerator, accelerator_names, model_names, platforms};
use shardscope::explain::{anchor, glossary};
use shardscope::plan::Field;

use crate::page_of;

/// `text` as it appears in a page.
fn escape(text: &str) -> String {
    maud::html! { (text) }.into_string()
}

/// The pages of the guide, by file.
fn written() -> impl Iterator<Item = (&'static str, &'static str)> {
    guide::pages().into_iter().map(|page| (page.file, page_of(page.file)))
}

/// The engine's sources.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the engine's sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The string literals at the start of `code`, up to the first that is followed by something other than a comma.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find('"') {
        let between = &rest[..at];
        if between.contains([';', '}', ')']) {
            break;
        }
        let inside = &rest[at + 1..];
        let mut text = String::new();
        let mut letters = inside.char_indices();
        let mut end = inside.len();
        while let Some((place, letter)) = letters.next() {
            match letter {
                '"' => {
                    end = place + 1;
                    break;
                }
                '\\' => match letters.next() {
                    // A continued line: its line break and the next line's indentation are not part of the text.
                    Some((_, '\n')) => {
                        while letters.as_str().starts_with(' ') {
                            letters.next();
                        }
                    }
                    Some((_, other)) => text.push(other),
                    None => {}
                },
                other => text.push(other),
            }
        }
        found.push(text);
        rest = &inside[end..];
    }
    found
}

/// The meaning in words of each formula in the engine's sources, with its file.
fn meanings() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for room in ["operators", "estimate"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(room), &mut files);
    }
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut add = |meaning: Option<&String>| {
            if let Some(meaning) = meaning {
                found.push((file.display().to_string(), meaning.clone()));
            }
        };
        for (at, _) in code.match_indices("Formula::new(") {
            let inside = &code[at + "Formula::new(".len()..];
            // The expression is assembled by a macro: the words follow it.
            let inside = match inside.trim_start().strip_prefix("concat!(") {
                Some(put_together) => put_together.split_once("),\n").map_or("", |(_, words)| words),
                None => inside,
            };
            // The expression is a literal or a name; in tables of calls both are names, and the rows contain the
            // words.
            let is_literal = inside.trim_start().starts_with('"')
                && !code[at..].starts_with("Formula::new(\n                concat!(");
            let all = literals(inside);
            add(if is_literal { all.get(1) } else { all.first() });
        }
        for (at, _) in code.match_indices("Formula {\n    expression:") {
            add(literals(&code[at..].replace("meaning:", "").replace("expression:", "")).get(1));
        }
        if let Some((_, rows)) = code.split_once("calls! {") {
            for row in rows.split_once("\n}").map_or("", |(rows, _)| rows).lines() {
                add(literals(row.trim_end_matches(';')).last().filter(|_| row.contains('"')));
            }
        }
    }
    found
}

/// Formulas that no setting reaches yet, each with the reason.
const UNREACHED: [(&str, &str); 7] = [
    (
        "The logits of the responses' positions, divided by the temperature in place.",
        "TRL and ms-swift score rollouts in micro-batches of training's size; larger ones stop the verdict",
    ),
    (
        "The gradient of the output layer's weight, accumulated in fp32.",
        "Liger's accum_dtype: recorded runs have it, no trainer's file sets it",
    ),
    (
        "The query latent's norm input, a part of what was gathered over the tensor ranks.",
        "latent attention in Megatron's own layers; everybody who runs it has Transformer Engine",
    ),
    (
        "Tensors of one layer of the vision tower at most, over the np patches of be sequences.",
        "Qwen's logits take 304,128 bytes a token, four patches of which take 245,760 in a layer of its tower",
    ),
    ("The key/value latent's norm input.", "as the query latent's: in Megatron's own layers alone"),
    (
        "Square root of the largest parameter's second moment: each parameter is stepped alone as soon as its gradient is there.",
        "over two ranks or more, where torchtitan steps within backward, backward of the embedding holds more",
    ),
    (
        "The recomputed MLP's input: the norm output.",
        "in Megatron's own layers; Transformer Engine's norm is recomputed with the MLP",
    ),
];

#[test]
fn formulas_said_to_be_out_of_reach_are() {
    let page = page_of("formulas.html");
    for (meaning, why) in UNREACHED {
        assert!(
            !page.contains(&escape(meaning)),
            "{meaning} is reached by now: take it off the list ({why})"
        );
    }
}

#[test]
fn every_formula_of_the_engine_is_there_with_its_source() {
    let all = meanings();
    assert!(all.len() > 180, "{} formulas were found in the sources", all.len());
    let page = page_of("formulas.html").to_owned() + page_of("guide.html");
    let missing: BTreeSet<String> = all
        .iter()
        .filter(|(_, meaning)| !page.contains(&escape(meaning)))
        .filter(|(_, meaning)| !UNREACHED.iter().any(|(unreached, _)| unreached == meaning))
        .map(|(file, meaning)| format!("{}: {meaning}", file.rsplit("/src/").next().unwrap_or_default()))
        .collect();
    assert!(missing.is_empty(), "{} are missing:\n{missing:#?}", missing.len());
    for entry in guide::entries() {
        assert!(!entry.formula.source.trim().is_empty(), "{}", entry.formula.meaning);
        assert!(page.contains(&format!("id=\"{}\"", entry.id)), "{}", entry.id);
    }
}

#[test]
fn every_setting_and_every_entry_of_the_catalog_is_there() {
    let page = page_of("reference.html");
    for field in Field::ALL {
        assert!(page.contains(&format!("id=\"setting-{}\"", field.name())), "{}", field.name());
        assert!(page.contains(&escape(field.about())), "{}", field.name());
    }
    for name in accelerator_names() {
        assert!(page.contains(&format!("id=\"accelerator-{}\"", anchor(name))), "{name}");
        let source = accelerator(name).expect("an accelerator of the catalog").source;
        assert!(!source.is_empty() && page.contains(&escape(&source)), "{name}: {source}");
    }
    for of in platforms() {
        assert!(page.contains(&escape(of.name)) && page.contains(&escape(of.source)), "{}", of.name);
    }
    for name in model_names() {
        assert!(page.contains(&format!("id=\"model-{}\"", anchor(name))), "{name}");
    }
}

#[test]
fn every_term_is_there() {
    let page = page_of("guide.html");
    for term in glossary() {
        assert!(page.contains(&format!("id=\"term-{}\"", anchor(term.name))), "{}", term.name);
        assert!(page.contains(&escape(term.long)) && page.contains(&escape(term.source)), "{}", term.name);
    }
}

/// The values of an attribute in `html`.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    html.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn every_link_leads_somewhere_and_no_place_has_two_names() {
    let places: BTreeMap<&str, BTreeSet<&str>> = crate::written()
        .iter()
        .map(|(file, html)| (*file, attributes(html, "id").into_iter().collect()))
        .collect();
    for (file, html) in written() {
        let ids = attributes(html, "id");
        let single: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(single.len(), ids.len(), "{file}: an id is there twice");
        for link in attributes(html, "href") {
            let (page, place) = link.split_once('#').unwrap_or((link, ""));
            // Plans open in the main page; files next to the pages are checked by the frame's own test.
            if page == "./" || link.ends_with(".css") || link.ends_with(".svg") {
                continue;
            }
            let page = if page.is_empty() { file } else { page };
            let target = places.get(page).unwrap_or_else(|| panic!("{file}: {link} leads to no page"));
            assert!(place.is_empty() || target.contains(place), "{file}: {link}");
        }
    }
}
