//! Writes the example and its answer into the page, so that a first visitor sees an answer before the engine has
//! loaded.
//!
//! yew's server-side rendering draws them with the page's own components, natively; the engine then draws the same in
//! its place. `index.html` hides it from visitors with their own plan.
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::{Captures, Regex};

use crate::process::{cargo, output};

/// Where the first answer goes, as in `index.html` or as left by Trunk's minifier. It is `inert`: nothing in it can
/// be pressed or typed into yet, so that no user input is lost when the engine takes over.
const PLACE: &str = r#"(<div id="?first-answer"? inert(?:="")?>)(</div>)"#;

/// Puts the first answer into the built `index.html` at `page`.
pub(super) fn write_first_answer(page: &Path) -> Result<()> {
    let html = fs::read_to_string(page).context("there is no index.html")?;
    let mut draw = cargo([
        "run",
        "--quiet",
        "--locked",
        "--package",
        "shardscope-page",
        "--features",
        "prerender",
        "--",
    ]);
    draw.arg(page.with_file_name("tables.txt"));
    let answer = output(&mut draw).context("the first answer could not be drawn")?;
    fs::write(page, with_answer(&html, answer.trim())?)?;
    Ok(())
}

/// The page with `answer` in its place.
fn with_answer(page: &str, answer: &str) -> Result<String> {
    let place = Regex::new(PLACE)?;
    if !place.is_match(page) {
        bail!("index.html has no place for the first answer");
    }
    // With a closure: in a replacement string `$1` would refer to a group, and an answer may contain that.
    Ok(place.replace(page, |found: &Captures<'_>| format!("{}{answer}{}", &found[1], &found[2])).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_takes_the_place_that_must_be_there() {
        for open in ["<div id=\"first-answer\" inert>", "<div id=first-answer inert>"] {
            let with = with_answer(&format!("<p>shell</p>{open}</div>"), "<main>$1</main>").unwrap();
            assert_eq!(with, format!("<p>shell</p>{open}<main>$1</main></div>"));
        }
        assert!(with_answer("<div id=app></div>", "").is_err());
    }

    #[test]
    fn the_page_has_the_place() {
        let page = std::fs::read_to_string(crate::process::root().join("index.html")).unwrap();
        assert!(with_answer(&page, "x").is_ok());
    }
}
