//! The steps that Trunk runs before and after its own work.
mod digest;
mod offline;
mod prerender;
mod seal;
mod styles;

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

pub use offline::list_files;

use crate::fingerprint::ADDRESS;
use crate::process::{cargo, root, run};
use crate::published::place;

/// Joins the style sheets and writes the additional pages, both into `target/`, from where `index.html` includes
/// them.
pub fn prebuild() -> Result<()> {
    let pages = root().join("target/pages");
    fs::create_dir_all(&pages)?;
    styles::join("main.css", &root().join("target/page.css"))?;
    styles::join("beside.css", &pages.join("pages.css"))?;
    // the engine, for this machine
    run(cargo(["run", "--quiet", "--locked", "--package", "pages", "--"]).arg(&pages))
}

/// The preview image that other sites show with a link.
const CARD: &str = "card.png";

/// The page `file` with its picture and its own address at `site`, if the build knows it: sites that show previews
/// accept no relative address, and a copy of the page elsewhere states its original.
fn addressed(page: &str, site: Option<&str>, file: &str) -> String {
    let Some(site) = site.map(|site| site.trim_end_matches('/')).filter(|site| !site.is_empty()) else {
        return page.to_owned();
    };
    // With quotes, and without if the page was minified.
    let whole = format!("content=\"{site}/{CARD}\"");
    let page =
        page.replace(&format!("content=\"{CARD}\""), &whole).replace(&format!("content={CARD}"), &whole);
    let own = place(site, file);
    let canonical = format!(
        "</title><link rel=\"canonical\" href=\"{own}\"><meta property=\"og:url\" content=\"{own}\">"
    );
    page.replacen("</title>", &canonical, 1)
}

/// Seals every page's content security policy and tells the service worker what to cache, in Trunk's staging
/// directory.
pub fn postbuild() -> Result<()> {
    let folder = env::var_os("TRUNK_STAGING_DIR").map_or_else(|| root().join("dist"), PathBuf::from);
    // after this, `trunk serve` still changes its own script, which reloads the page
    let reloading = env::var("TRUNK_PROFILE").is_ok_and(|profile| profile == "debug");
    // Before the seal, which digests the page's content at that point.
    if !reloading {
        prerender::write_first_answer(&folder.join("index.html"))?;
    }
    for entry in fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let page = entry?.path();
        if page.extension().is_some_and(|extension| extension == "html") {
            let html = fs::read_to_string(&page)?;
            // The service worker takes what ends otherwise for half of a page.
            if !reloading && !html.trim_end().ends_with("</html>") {
                bail!("{} does not end as a page does", page.display());
            }
            let sealed = if reloading { seal::unsealed(&html) } else { seal::sealed(&html) };
            let name = page.file_name().unwrap_or_default().to_string_lossy();
            let sealed = sealed.map(|html| addressed(&html, env::var(ADDRESS).ok().as_deref(), &name));
            let sealed = sealed.with_context(|| format!("{} cannot be sealed", page.display()))?;
            fs::write(&page, sealed)?;
        }
    }
    if reloading { Ok(()) } else { list_files(&folder) }
}

#[cfg(test)]
mod tests {
    use super::addressed;

    #[test]
    fn the_card_has_the_site_s_address_where_that_is_known() {
        let page = "<title>a</title><meta property=og:image content=card.png><meta content=\"card.png\">";
        let whole = "content=\"https://example.org/x/card.png\"";
        for (file, own) in
            [("index.html", "https://example.org/x/"), ("a.html", "https://example.org/x/a.html")]
        {
            let head = format!(
                "<link rel=\"canonical\" href=\"{own}\"><meta property=\"og:url\" content=\"{own}\">"
            );
            let expected = format!("<title>a</title>{head}<meta property=og:image {whole}><meta {whole}>");
            assert_eq!(addressed(page, Some("https://example.org/x/"), file), expected);
        }
        assert_eq!(addressed(page, None, "index.html"), page);
        assert_eq!(addressed(page, Some(""), "index.html"), page);
    }
}
