//! Tells the service worker what to cache.
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::digest::sha256;
use crate::weight::LATER;

/// Writes the digest of a built page's `index.html`, as served, and the files that it names into its `sw.js`; writes
/// the name of its icon into its manifest.
pub fn list_files(folder: &Path) -> Result<()> {
    let page = fs::read_to_string(folder.join("index.html")).context("there is no index.html")?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let kind = Path::new(&name).extension().and_then(|kind| kind.to_str());
        let loaded = matches!(kind, Some("css" | "js" | "svg" | "wasm")) && name != "sw.js";
        // What the page requests later must be available without a network.
        if loaded && page.contains(&name) || LATER.contains(&name.as_str()) {
            files.push(name);
        }
    }
    // Directory order is arbitrary, but the same sources must give the same page to the byte.
    files.sort();
    if files.is_empty() {
        bail!("index.html names no files");
    }
    let worker = folder.join("sw.js");
    let text = fs::read_to_string(&worker).context("there is no sw.js")?;
    // Browsers update a worker when its bytes differ: the page's digest changes it with every change of the page.
    let digest = Value::from(sha256(page.as_bytes()));
    let text =
        with(&text, "DIGEST", &digest).and_then(|text| with(&text, "FILES", &Value::from(files.clone())));
    fs::write(&worker, text.context("sw.js has no DIGEST or no FILES to be filled in")?)?;
    // Trunk puts a digest into the icon's name; the manifest is copied as it is and cannot know it.
    let icon = files.iter().find(|name| name.starts_with("icon-") && name.ends_with(".svg"));
    if let Some(icon) = icon {
        let manifest = folder.join("manifest.webmanifest");
        let text = fs::read_to_string(&manifest).context("there is no manifest.webmanifest")?;
        fs::write(&manifest, with_icon(&text, icon)?)?;
    }
    Ok(())
}

/// The script with its constant of that name set to `value`, whatever it was.
fn with(script: &str, constant: &str, value: &Value) -> Option<String> {
    let start = format!("const {constant} = ");
    let mut found = false;
    let lines = script.lines().map(|line| match line.starts_with(&start) {
        true => {
            found = true;
            format!("{start}{value};\n")
        }
        false => format!("{line}\n"),
    });
    let text: String = lines.collect();
    found.then_some(text)
}

fn with_icon(manifest: &str, icon: &str) -> Result<String> {
    let mut manifest: Value = serde_json::from_str(manifest).context("the manifest is not JSON")?;
    for entry in manifest["icons"].as_array_mut().into_iter().flatten() {
        if entry["type"] == "image/svg+xml" {
            entry["src"] = icon.into();
        }
    }
    Ok(manifest.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site with a worker, a manifest and files that its page names and others.
    fn site() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "index.html",
            "<link href=./page-1.css><link href=./icon-2.svg><script>import x from './x-3.js'</script>",
        );
        for name in ["page-1.css", "icon-2.svg", "x-3.js", "embed.js", "pages.css"] {
            write(name, "");
        }
        write("sw.js", include_str!("../../../assets/sw.js"));
        write("manifest.webmanifest", include_str!("../../../assets/manifest.webmanifest"));
        folder
    }

    #[test]
    fn the_worker_gets_the_page_s_digest_and_the_files_it_names() {
        let site = site();
        let worker = || fs::read_to_string(site.path().join("sw.js")).unwrap();
        list_files(site.path()).unwrap();
        let first = worker();
        assert!(first.contains("const FILES = [\"icon-2.svg\",\"page-1.css\",\"x-3.js\"];"), "{first}");
        assert!(first.contains("const DIGEST = \"sha256-"), "{first}");
        let page = site.path().join("index.html");
        fs::write(&page, fs::read_to_string(&page).unwrap() + "<!-- another -->").unwrap();
        list_files(site.path()).unwrap();
        assert_ne!(worker(), first);
    }

    #[test]
    fn the_manifest_names_the_icon_by_its_digest() {
        let site = site();
        list_files(site.path()).unwrap();
        let text = fs::read_to_string(site.path().join("manifest.webmanifest")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        let icons = manifest["icons"].as_array().unwrap();
        assert!(icons.iter().any(|icon| icon["src"] == "icon-2.svg"), "{text}");
        assert!(icons.iter().any(|icon| icon["src"] == "icon-512.png"), "{text}");
    }

    #[test]
    fn a_page_without_files_or_worker_is_an_error() {
        let site = site();
        fs::write(site.path().join("index.html"), "nothing").unwrap();
        assert!(list_files(site.path()).is_err());
    }
}
