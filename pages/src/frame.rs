//! What every page has around its content: the head, the way back, the way to the others.

use crate::html::escape;
use crate::{evidence, guide};

/// One page beside the main page.
pub struct Page {
    /// Its file in the site.
    pub file: &'static str,
    /// What links call it.
    pub name: &'static str,
    /// One sentence, for those who look for it and under its name.
    pub about: &'static str,
    /// Files of [`assets()`] that it runs as modules.
    pub scripts: &'static [&'static str],
    /// Its content, as HTML: what stands in `<main>`.
    pub body: fn() -> String,
}

/// Every page, in the order of the links.
#[must_use]
pub fn pages() -> Vec<Page> {
    let mut all = Vec::from(guide::pages());
    all.push(evidence::page());
    all
}

/// The files that the pages load, besides `pages.css`, which `tools/styles` joins.
#[must_use]
pub fn assets() -> Vec<(&'static str, &'static str)> {
    vec![
        ("icon.svg", include_str!("../../assets/icon.svg")),
        ("evidence.js", include_str!("../assets/evidence.js")),
    ]
}

/// `page` as a whole document. As in `index.html`, the placeholder in the policy becomes the hashes of the inline
/// scripts (`tools/seal`), and a theme that the reader chose holds before the first paint.
#[must_use]
pub fn framed(page: &Page) -> String {
    let others: String = pages()
        .iter()
        .map(|other| {
            let here = if other.file == page.file { " aria-current=\"page\"" } else { "" };
            format!("<a href=\"{}\"{here}>{}</a>", other.file, escape(other.name))
        })
        .collect();
    let scripts: String = page
        .scripts
        .iter()
        .map(|file| format!("<script type=\"module\" src=\"{file}\"></script>\n"))
        .collect();
    let (name, about, body) = (escape(page.name), escape(page.about), (page.body)());
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' INLINE-SCRIPTS; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="{about}">
<title>{name} · Shardscope</title>
<script>
try {{
  var theme = (localStorage.getItem("shardscope.theme") || "").replace(/"/g, "");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}} catch (_) {{ /* storage may be forbidden, as in a sandboxed frame */ }}
</script>
<link rel="icon" type="image/svg+xml" href="icon.svg">
<link rel="stylesheet" href="pages.css">
{scripts}</head>
<body class="beside">
<a class="skip" href="#content">To the content</a>
<header class="top">
<a class="home" href="./">Shardscope</a>
<nav aria-label="Pages"><a href="./">Calculator</a>{others}</nav>
</header>
<main id="content">
<h1>{name}</h1>
<p class="lead">{about}</p>
{body}</main>
<footer class="foot"><p>Written from what the engine computes, when the site was built.</p></footer>
</body>
</html>
"##
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_can_be_sealed_and_leads_to_every_other() {
        for page in pages() {
            let html = framed(&page);
            assert_eq!(html.matches("INLINE-SCRIPTS").count(), 1, "{}", page.file);
            assert_eq!(html.matches(" style=").count(), 0, "{}: the policy forbids inline styles", page.file);
            for other in pages() {
                assert!(
                    html.contains(&format!("href=\"{}\"", other.file)),
                    "{} to {}",
                    page.file,
                    other.file
                );
            }
            for script in page.scripts {
                assert!(assets().iter().any(|(name, _)| name == script), "{script}");
            }
        }
    }
}
