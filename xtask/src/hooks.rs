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
            let sealed = sealed.with_context(|| format!("{} cannot be sealed", page.display()))?;
            fs::write(&page, sealed)?;
        }
    }
    if reloading { Ok(()) } else { list_files(&folder) }
}
