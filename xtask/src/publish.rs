//! Whether the crates could be published as they are.
use serde_json::Value;

use anyhow::{Context, Result};

use crate::process::{cargo, note, output, run, say};

/// Packs every crate that is for crates.io, unpacks it and compiles it from there, those that others need first: cargo takes
/// the members of the workspace in the place of the registry's, which has none of them before the first release. Nothing is
/// uploaded.
///
/// # Errors
/// Where a manifest lacks what crates.io asks for, a file is not in its package, or a package does not compile by itself.
pub fn dry_run() -> Result<()> {
    let packages = published()?;
    say(&format!("packing and compiling {} crates", packages.len()));
    let mut publish = cargo(["publish", "--dry-run", "--locked", "--allow-dirty", "--quiet"]);
    for package in &packages {
        publish.args(["--package", package]);
    }
    run(&mut publish)?;
    note(&format!("would be published: {}", packages.join(", ")));
    Ok(())
}

/// The members that may be published.
fn published() -> Result<Vec<String>> {
    names(|_| true)
}

/// Those among them that others can use.
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
    // Metadata have an empty list for `publish = false`, and null where nothing is said.
    let may = |package: &&Value| package["publish"].is_null() && wanted(package);
    Ok(packages.iter().filter(may).filter_map(|package| Some(package["name"].as_str()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::{libraries, published};

    #[test]
    fn what_is_the_projects_own_is_neither_published_nor_documented_for_others() {
        let (published, libraries) = (published().unwrap(), libraries().unwrap());
        for own in ["xtask", "speed", "pages", "e2e", "shardscope-page", "shardscope-js"] {
            assert!(!published.iter().any(|name| name == own), "{own}");
        }
        assert!(published.iter().any(|name| name == "shardscope-cli"));
        assert!(libraries.iter().any(|name| name == "shardscope"));
        assert!(!libraries.iter().any(|name| name == "shardscope-cli"));
    }
}
