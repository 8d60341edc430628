//! One version for everything that is published: that of the workspace.
use std::fs;

use anyhow::{Context, Result, bail};

use crate::process::root;

/// Where else the version is stated, and on which line.
const PLACES: [(&str, &str, &str); 2] =
    [("npm/package.json", "  \"version\": \"", "\","), ("CITATION.cff", "version: ", "")];

/// The version of the workspace.
pub fn version() -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let package =
        manifest.split_once("[workspace.package]").context("Cargo.toml has no [workspace.package]")?.1;
    let line = package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    line.map(str::to_owned).context("[workspace.package] has no version")
}

/// Fails if another place, or the tag of a release, has a different version.
pub fn check(tag: Option<&str>) -> Result<()> {
    let version = version()?;
    let mut wrong = Vec::new();
    for (file, before, after) in PLACES {
        let text = fs::read_to_string(root().join(file)).with_context(|| file.to_owned())?;
        let found = text.lines().find_map(|line| line.strip_prefix(before)?.strip_suffix(after));
        if found != Some(version.as_str()) {
            wrong.push(format!("{file} has {}", found.unwrap_or("none")));
        }
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let own = format!("version = \"{version}\"");
    // The crates name each other by path and by version: crates.io knows only the version.
    for line in manifest.lines().filter(|line| line.starts_with("shardscope") && line.contains("path = ")) {
        if !line.contains(&own) {
            wrong.push(format!("Cargo.toml has {line}"));
        }
    }
    if let Some(tag) = tag
        && tag.strip_prefix('v') != Some(version.as_str())
    {
        wrong.push(format!("the tag is {tag}"));
    }
    if !wrong.is_empty() {
        bail!("the workspace is at {version}, but {}", wrong.join("; "));
    }
    println!("{version}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check, version};

    #[test]
    fn every_place_has_the_workspaces_version() {
        check(None).unwrap();
        check(Some(&format!("v{}", version().unwrap()))).unwrap();
        assert!(check(Some("v0.0.0")).is_err());
        assert!(check(Some(&version().unwrap())).is_err(), "tags begin with v");
    }
}
