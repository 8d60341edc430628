//! What Trunk has done before and after its own work.
mod digest;
mod offline;
mod prerender;
mod seal;
mod styles;

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

pub use offline::list_files;

use crate::process::{cargo, root, run};

/// Joins the style sheets and writes the pages beside the main page, both into `target/`, where `index.html` has them from.
pub fn prebuild() -> Result<()> {
    let pages = root().join("target/pages");
    fs::create_dir_all(&pages)?;
    styles::join("main.css", &root().join("target/page.css"))?;
    styles::join("beside.css", &pages.join("pages.css"))?;
    // the engine, for this machine
    run(cargo(["run", "--quiet", "--locked", "--package", "pages", "--"]).arg(&pages))
}

/// The picture that other sites show with a link.
const CARD: &str = "card.png";

/// The page with its picture at `site`, where the build knows it: those who show cards take no relative address.
fn addressed(page: &str, site: Option<&str>) -> String {
    let Some(site) = site.map(|site| site.trim_end_matches('/')).filter(|site| !site.is_empty()) else {
        return page.to_owned();
    };
    // With quotes, and without where the page was minified.
    let whole = format!("content=\"{site}/{CARD}\"");
    page.replace(&format!("content=\"{CARD}\""), &whole).replace(&format!("content={CARD}"), &whole)
}

/// Seals every page's content security policy and tells the service worker what to keep, in the folder that Trunk names.
pub fn postbuild() -> Result<()> {
    let folder = env::var_os("TRUNK_STAGING_DIR").map_or_else(|| root().join("dist"), PathBuf::from);
    // `trunk serve` still changes its own script, which reloads the page, after this
    let reloading = env::var("TRUNK_PROFILE").is_ok_and(|profile| profile == "debug");
    if !reloading {
        prerender::write_first_answer(&folder.join("index.html"))?;
    }
    for entry in fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let page = entry?.path();
        if page.extension().is_some_and(|extension| extension == "html") {
            let html = fs::read_to_string(&page)?;
            let sealed = if reloading { seal::unsealed(&html) } else { seal::sealed(&html) };
            let sealed = sealed.map(|page| addressed(&page, env::var("SITE_URL").ok().as_deref()));
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
        let page = "<meta property=og:image content=card.png><meta content=\"card.png\">";
        let whole = "content=\"https://example.org/x/card.png\"";
        let expected = format!("<meta property=og:image {whole}><meta {whole}>");
        assert_eq!(addressed(page, Some("https://example.org/x/")), expected);
        assert_eq!(addressed(page, None), page);
        assert_eq!(addressed(page, Some("")), page);
    }
}
