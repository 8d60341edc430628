//! Checks whether the crates could be published as they are.
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{cargo, note, output, run, say, target_folder};

/// Packs every crate for crates.io, unpacks it and compiles it from there, dependencies first: cargo uses the members
/// of the workspace instead of the registry's, which has none of them before the first release. Nothing is uploaded.
///
/// # Errors
/// If a manifest lacks what crates.io requires, a file is not in its package, or a package does not compile by
/// itself.
pub fn dry_run() -> Result<()> {
    let packages = published()?;
    say(&format!("packing and compiling {} crates", packages.len()));
    let build = target_folder().join("publish");
    forget_earlier(&packages, &build)?;
    let mut publish = cargo(["publish", "--dry-run", "--locked", "--allow-dirty", "--quiet"]);
    publish.arg("--target-dir").arg(&build);
    for package in &packages {
        publish.args(["--package", package]);
    }
    run(&mut publish)?;
    remove(&build)?;
    note(&format!("would be published: {}", packages.join(", ")));
    Ok(())
}

/// Removes what an earlier dry run left. Cargo passes the packages on through a local registry in the target
/// directory and treats a registry version as immutable: it compiles the sources that it unpacked the first time, and
/// keeps the results, although the packages of the same version have changed since.
fn forget_earlier(packages: &[String], build: &Path) -> Result<()> {
    remove(build)?;
    let Some(sources) = cargo_home().map(|home| home.join("registry/src")).filter(|sources| sources.is_dir())
    else {
        return Ok(());
    };
    for registry in fs::read_dir(&sources)? {
        let registry = registry?;
        // Registry sources are under `HOST-HASH`, and a local registry has no host.
        if !registry.file_name().to_string_lossy().starts_with('-') {
            continue;
        }
        for source in fs::read_dir(registry.path())? {
            let source = source?;
            if is_of(&source.file_name().to_string_lossy(), packages) {
                remove(&source.path())?;
            }
        }
    }
    Ok(())
}

/// Whether a directory `NAME-VERSION` belongs to one of these packages.
fn is_of(folder: &str, packages: &[String]) -> bool {
    packages.iter().any(|package| {
        let version = folder.strip_prefix(package.as_str()).and_then(|rest| rest.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    })
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The members that may be published.
fn published() -> Result<Vec<String>> {
    names(|_| true)
}

/// Those that are libraries.
pub(crate) fn libraries() -> Result<Vec<String>> {
    let is_library = |target: &Value| {
        target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
    };
    names(|package| package["targets"].as_array().is_some_and(|targets| targets.iter().any(is_library)))
}

fn names(wanted: impl Fn(&Value) -> bool) -> Result<Vec<String>> {
    let mut metadata = cargo(["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&output(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    // Metadata have an empty list for `publish = false`, and null by default.
    let may = |package: &&Value| package["publish"].is_null() && wanted(package);
    Ok(packages.iter().filter(may).filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::{is_of, libraries, published};

    #[test]
    fn sources_of_an_earlier_run_are_recognised_by_name_and_version() {
        let packages = ["shardscope".to_owned(), "shardscope-plan".to_owned()];
        assert!(is_of("shardscope-0.1.0", &packages) && is_of("shardscope-plan-1.12.0-rc.1", &packages));
        assert!(!is_of("shardscope-search-0.1.0", &packages) && !is_of("serde-1.0.0", &packages));
    }

    #[test]
    fn what_is_the_projects_own_is_neither_published_nor_documented_for_others() {
        let (published, libraries) = (published().unwrap(), libraries().unwrap());
        for own in
            ["xtask", "speed", "pages", "mutants", "mutant-switch", "e2e", "shardscope-page", "shardscope-js"]
        {
            assert!(!published.iter().any(|name| name == own), "{own}");
        }
        assert!(published.iter().any(|name| name == "shardscope-cli"));
        assert!(libraries.iter().any(|name| name == "shardscope"));
        assert!(!libraries.iter().any(|name| name == "shardscope-cli"));
    }
}
