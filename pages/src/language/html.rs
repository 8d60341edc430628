//! The texts of a page, told from its markup.

use shardscope::text::{Saying, spoken};

use crate::html::escape;

/// What stands in these is no language.
const CODE: [&str; 4] = ["script", "style", "code", "pre"];
/// Attributes that are seen, heard or, as the last two of `index.html`, said where something goes wrong.
const SAID: [&str; 7] = ["alt", "title", "placeholder", "aria-label", "content", "data-lost", "data-reason"];

/// `page` in another language: every text that `sayings` have, and its own `lang`.
#[must_use]
pub fn speak(page: &str, language: &str, sayings: &[Saying]) -> String {
    let translated = walk(page, &mut |text| spoken(text, sayings));
    // Trunk leaves out quotes that are not needed.
    let lang = if translated.contains("<html lang=en>") { "<html lang=en>" } else { "<html lang=\"en\">" };
    translated.replacen(lang, &format!("<html lang=\"{language}\">"), 1)
}

/// Every text of `page`, in its order.
#[must_use]
pub fn texts(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(page, &mut |text| {
        found.push(text.to_owned());
        None
    });
    found
}

/// The page with each text replaced by what `told` makes of it, where it makes something of it.
fn walk(page: &str, told: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((text, markup)) = rest.split_once('<') {
        out.push_str(&replaced(text, told));
        let end = if markup.starts_with("!--") { "-->" } else { ">" };
        let length = markup.find(end).map_or(markup.len(), |at| at + end.len());
        let (tag, behind) = markup.split_at(length);
        out.push('<');
        out.push_str(&attributes(tag, told));
        rest = behind;
        let name = tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        if CODE.contains(&name) {
            let end = rest.find(&format!("</{name}")).unwrap_or(rest.len());
            let (code, behind) = rest.split_at(end);
            out.push_str(code);
            rest = behind;
        }
    }
    out.push_str(&replaced(rest, told));
    out
}

/// A tag with the texts among its attributes replaced.
fn attributes(tag: &str, told: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let settings = tag.starts_with("meta") && !tag.contains("description");
    let mut out = String::new();
    let mut rest = tag;
    while let Some((before, behind)) = rest.split_once("=\"") {
        let (value, after) = behind.split_once('"').unwrap_or((behind, ""));
        out.push_str(before);
        out.push_str("=\"");
        let name = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        if SAID.contains(&name) && !settings {
            out.push_str(&replaced(value, told));
        } else {
            out.push_str(value);
        }
        out.push('"');
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A text with its white space around it, as it was or as `told` has it.
fn replaced(text: &str, told: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let bare = text.trim();
    if !bare.contains(|c: char| c.is_ascii_alphabetic()) {
        return text.to_owned();
    }
    match told(&unescaped(bare)) {
        Some(other) => text.replacen(bare, &escape(&other), 1),
        None => text.to_owned(),
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html>\n<html lang=\"en\">\n<head><meta name=description content=\"What it takes\">\
        <meta http-equiv=\"Content-Security-Policy\" content=\"What it takes\"><script>\"What it takes\"</script></head>\
        <!-- What it takes --><body><p id=\"What it takes\" data-lost=\"{0} is gone\">\n  What it takes\n</p>\
        <b title=\"a &lt; b\">5 < 6 stays</b><code>What it takes</code></body></html>";
    const SAYINGS: &[Saying] =
        &[("What it takes", "Was es \"braucht\""), ("{0} is gone", "{0} ist weg"), ("a < b", "b > a")];

    #[test]
    fn texts_are_told_from_markup_and_code() {
        let expected = PAGE
            .replace("lang=\"en\"", "lang=\"de\"")
            .replace("content=\"What it takes\"><meta", "content=\"Was es &quot;braucht&quot;\"><meta")
            .replace("  What it takes", "  Was es &quot;braucht&quot;")
            .replace("{0} is gone", "{0} ist weg")
            .replace("a &lt; b", "b &gt; a");
        assert_eq!(speak(PAGE, "de", SAYINGS), expected);
        assert_eq!(speak(PAGE, "en", &[]), PAGE);
        assert!(texts(PAGE).contains(&"{0} is gone".to_owned()));
    }

    #[test]
    fn every_page_is_whole_after_its_texts_were_read() {
        for page in crate::pages() {
            let html = crate::framed(&page);
            assert_eq!(speak(&html, "en", &[]), html, "{}", page.file);
            assert!(texts(&html).len() > 100, "{}", page.file);
        }
    }
}
