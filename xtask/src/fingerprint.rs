//! Checks whether `dist/` is what a build of the current sources would produce.
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ignore::WalkBuilder;
use sha2::{Digest, Sha256};

use crate::process::{Version, root};

/// The variable with the address of the published directory.
pub const ADDRESS: &str = "SITE_URL";
/// Top-level entries of the checkout that do not go into the page.
const NOT_OF_THE_PAGE: [&str; 10] =
    [".ci", ".git", ".github", "benches", "dist", "docs", "e2e", "examples", "npm", "target"];
/// Programs whose version affects the page.
const PROGRAMS: [&str; 4] = ["rustc", "trunk", "wasm-bindgen", "wasm-opt"];

/// Digests of a build's inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Sources and tools.
    pub inputs: String,
    /// Every file in `dist/`.
    pub outputs: String,
}

impl Fingerprint {
    fn file() -> PathBuf {
        root().join("target/page.fingerprint")
    }

    /// Saves it for the next time.
    pub fn save(&self) -> Result<()> {
        fs::create_dir_all(root().join("target"))?;
        fs::write(Self::file(), format!("{}\n{}\n", self.inputs, self.outputs))?;
        Ok(())
    }

    /// The fingerprint of the last build.
    pub fn saved() -> Option<Self> {
        let text = fs::read_to_string(Self::file()).ok()?;
        let (inputs, outputs) = text.trim_end().split_once('\n')?;
        Some(Self { inputs: inputs.to_owned(), outputs: outputs.to_owned() })
    }

    /// Whether sources, tools and `dist/` are unchanged.
    pub fn holds(&self) -> bool {
        let dist = root().join("dist");
        // The cheap checks first: the inputs are the whole checkout.
        dist.join("index.html").is_file()
            && of_folder(&dist).is_ok_and(|outputs| outputs == self.outputs)
            && inputs().is_ok_and(|inputs| inputs == self.inputs)
    }
}

/// The digest of everything that goes into the page: every file that git does not ignore, except documents and what
/// is in `NOT_OF_THE_PAGE`, the versions of the tools, and the address that the page says it has.
pub fn inputs() -> Result<String> {
    inputs_at(&std::env::var(ADDRESS).unwrap_or_default())
}

/// [`inputs`] of a page for `address`, which is written into its head and its list of addresses.
fn inputs_at(address: &str) -> Result<String> {
    let mut walk = WalkBuilder::new(root());
    // Hidden files are part of it: cargo reads `.cargo/config.toml`.
    walk.hidden(false).filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        !(entry.depth() == 1 && NOT_OF_THE_PAGE.contains(&&*name) || name.ends_with(".md"))
    });
    let mut files = Vec::new();
    for entry in walk.build() {
        let entry = entry?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
    }
    let versions = PROGRAMS.map(|program| format!("{program} {:?}", Version::new(program)));
    digest(root(), files, &format!("{}\n{ADDRESS} {address}", versions.join("\n")))
}

/// The digest of every file below `folder`.
pub fn of_folder(folder: &Path) -> Result<String> {
    digest(folder, files_below(folder)?, "")
}

/// Every file below `folder`, ignored or not.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in WalkBuilder::new(folder).standard_filters(false).build() {
        let entry = entry?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

fn digest(folder: &Path, mut files: Vec<PathBuf>, more: &str) -> Result<String> {
    // The walk is in file system order.
    files.sort();
    let mut hash = Sha256::new();
    hash.update(more);
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let name = file.strip_prefix(folder).unwrap_or(&file);
        // each part is prefixed with its length, so that different inputs cannot collide
        for part in [name.as_os_str().as_encoded_bytes(), &bytes] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_s_digest_changes_with_names_and_contents_alone() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a", "1");
        let first = of_folder(folder.path()).unwrap();
        write("a", "1");
        assert_eq!(of_folder(folder.path()).unwrap(), first);
        write("a", "2");
        let second = of_folder(folder.path()).unwrap();
        assert_ne!(second, first);
        fs::rename(folder.path().join("a"), folder.path().join("b")).unwrap();
        assert_ne!(of_folder(folder.path()).unwrap(), second);
    }

    #[test]
    fn the_page_is_made_of_its_sources_and_not_of_documents() {
        let files = |name: &str| root().join(name).exists();
        assert!(files("Cargo.lock") && files("index.html") && files("README.md"));
        assert_eq!(inputs().unwrap(), inputs().unwrap());
    }

    #[test]
    fn a_page_for_another_address_is_another_page() {
        let nowhere = inputs_at("").unwrap();
        assert_eq!(inputs_at("").unwrap(), nowhere);
        assert_ne!(inputs_at("https://example.org/x").unwrap(), nowhere);
    }
}
