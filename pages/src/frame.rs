//! The frame of every page: the head, the link back, and the links to the other pages.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::page::Page;

/// As in `index.html`, the placeholder is replaced by the digests of the inline scripts when the page is built.
const POLICY: &str = "default-src 'none'; script-src 'self' INLINE-SCRIPTS; style-src 'self'; font-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// As in `index.html`, a theme chosen by the reader is applied before the first paint.
const THEME: &str = r#"
try {
  var theme = (localStorage.getItem("shardscope.theme") || "").replace(/"/g, "");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (_) { /* storage may be forbidden, as in a sandboxed frame */ }
"#;

/// The project's logo, as on the main page.
fn mark() -> Markup {
    html! {
        svg.mark width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" {
            @for (class, x, y) in [("mark-0", 1, 1), ("mark-1", 11, 1), ("mark-2", 1, 11), ("mark-3", 11, 11)] {
                rect class=(class) x=(x) y=(y) width="8" height="8" rx="2" {}
            }
        }
    }
}

/// The complete document of a file, with links to `pages`, a name, a one-sentence description, modules that it runs,
/// and its content.
pub(crate) fn document(
    pages: &[Page],
    file: &str,
    name: &str,
    about: &str,
    scripts: &[&str],
    body: &Markup,
) -> String {
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
                        @for other in pages {
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
