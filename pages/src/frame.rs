//! What every page has around its content: the head, the way back, the way to the others.

use std::borrow::Cow;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::page::Page;
use crate::{evidence, gallery, guide};
use shardscope::session::given::{GIVEN, given};

/// Every page, in the order of the links.
#[must_use]
pub fn pages() -> Vec<Page> {
    let mut all = Vec::from(guide::pages());
    all.push(evidence::page());
    all.push(gallery::page());
    all
}

/// The files that the pages load, besides `pages.css`, which the build joins; and those that the main page's engine does.
#[must_use]
pub fn assets() -> Vec<(&'static str, Cow<'static, str>)> {
    vec![
        ("icon.svg", include_str!("../../assets/icon.svg").into()),
        ("evidence.js", include_str!("../assets/evidence.js").into()),
        ("tables.txt", tables().into()),
    ]
}

/// The texts of the engine's tables by name, which the main page has beside its program.
fn tables() -> String {
    let given = given();
    let texts = shardscope::tables().map(|table| (table.name(), table.text()));
    shardscope::joined(texts.chain([(GIVEN, given.as_str())]))
}

/// As in `index.html`, the placeholder becomes the digests of the inline scripts when the page is built.
const POLICY: &str = "default-src 'none'; script-src 'self' INLINE-SCRIPTS; style-src 'self'; font-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// As in `index.html`, a theme that the reader chose holds before the first paint.
const THEME: &str = r#"
try {
  var theme = (localStorage.getItem("shardscope.theme") || "").replace(/"/g, "");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (_) { /* storage may be forbidden, as in a sandboxed frame */ }
"#;

/// The mark of the project, as the main page has it.
fn mark() -> Markup {
    html! {
        svg.mark width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" {
            @for (class, x, y) in [("mark-0", 1, 1), ("mark-1", 11, 1), ("mark-2", 1, 11), ("mark-3", 11, 11)] {
                rect class=(class) x=(x) y=(y) width="8" height="8" rx="2" {}
            }
        }
    }
}

/// `page` as a whole document.
#[must_use]
pub fn framed(page: &Page) -> String {
    document(page.file, page.name, page.about, page.scripts, &(page.body)())
}

/// A whole document of a file, with a name, a sentence about it, modules that it runs, and its content.
pub(crate) fn document(file: &str, name: &str, about: &str, scripts: &[&str], body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="description" content=(about);
                meta property="og:title" content={ (name) " · Shardscope" };
                meta property="og:description" content=(about);
                meta property="og:type" content="article";
                meta property="og:image" content="card.png";
                meta name="twitter:card" content="summary_large_image";
                title { (name) " · Shardscope" }
                script { (PreEscaped(THEME)) }
                link rel="icon" type="image/svg+xml" href="icon.svg";
                link rel="stylesheet" href="pages.css";
                @for script in scripts {
                    script type="module" src=(script) {}
                }
            }
            body.beside {
                a.skip href="#content" { "Skip to content" }
                header.top {
                    a.home href="./" { (mark()) "Shardscope" }
                    nav aria-label="Pages" {
                        a href="./" { "Calculator" }
                        @for other in pages() {
                            a href=(other.file) aria-current=[(other.file == file).then_some("page")] { (other.name) }
                        }
                    }
                }
                main #content {
                    h1 { (name) }
                    p.lead { (about) }
                    (body)
                }
                footer.foot { p { "Written from what the engine computes, when the site was built." } }
            }
        }
    };
    document.into_string()
}
