//! Trunk, wasm-bindgen and wasm-opt: downloaded as binaries if their projects publish one for this machine, otherwise
//! compiled.
use std::env;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::fingerprint::files_below;
use crate::packages::{NpmPackage, node, npm};
use crate::process::{Version, cargo, command, find, note, output, run, say, tools};

/// wasm-opt run by Node.
const NPM_BINARYEN: NpmPackage = NpmPackage {
    name: "binaryen",
    version: "132.0.0",
    integrity: "sha512-4Usg7yEvwO3FMso3Oov6qkOOHSod1IEv+boKkh77kTljM+eNBouqCTbqWswGzbG+vDNO/b/v2C4gfEh1WgB9Lg==",
};
/// Time limits of a download: to connect, and in total. Unit: second.
const CONNECT_LIMIT: &str = "10";
const FETCH_LIMIT: &str = "300";

pub(super) fn wasm_bindgen(version: &str) -> Result<()> {
    if has_version("wasm-bindgen", version) {
        return Ok(());
    }
    let triple = match machine() {
        ("x86_64", "linux") => Some("x86_64-unknown-linux-musl"),
        ("aarch64", "linux") => Some("aarch64-unknown-linux-gnu"),
        ("x86_64", "macos") => Some("x86_64-apple-darwin"),
        ("aarch64", "macos") => Some("aarch64-apple-darwin"),
        _ => None,
    };
    let archive = triple.map(|triple| {
        format!(
            "https://github.com/wasm-bindgen/wasm-bindgen/releases/download/{version}/wasm-bindgen-{version}-{triple}.tar.gz"
        )
    });
    let programs = ["wasm-bindgen", "wasm-bindgen-test-runner"];
    let right = || has_version("wasm-bindgen", version);
    let compile = || cargo_install("wasm-bindgen-cli", version, &[]);
    first_of(
        &format!("wasm-bindgen {version}"),
        &[
            ("cargo binstall", &|| binstall("wasm-bindgen-cli", version, right)),
            ("its project's release", &|| fetch(archive.as_deref(), &programs, right)),
            ("compiled, 1 to 3 minutes", &compile),
        ],
    )
}

pub(super) fn trunk(version: &str) -> Result<()> {
    if has_at_least("trunk", version) {
        return Ok(());
    }
    let triple = match machine() {
        ("x86_64", "linux") => Some("x86_64-unknown-linux-gnu"),
        ("aarch64", "linux") => Some("aarch64-unknown-linux-gnu"),
        ("x86_64", "macos") => Some("x86_64-apple-darwin"),
        ("aarch64", "macos") => Some("aarch64-apple-darwin"),
        _ => None,
    };
    let archive = triple.map(|triple| {
        format!("https://github.com/trunk-rs/trunk/releases/download/v{version}/trunk-{triple}.tar.gz")
    });
    let right = || has_at_least("trunk", version);
    // Without its default features Trunk needs no TLS library: it has nothing to download if the other tools are
    // present.
    let compile = || cargo_install("trunk", version, &["--no-default-features"]);
    first_of(
        &format!("Trunk {version}"),
        &[
            ("cargo binstall", &|| binstall("trunk", version, right)),
            ("its project's release", &|| fetch(archive.as_deref(), &["trunk"], right)),
            ("compiled, 3 to 6 minutes", &compile),
        ],
    )
}

pub(super) fn wasm_opt(version: &str) -> Result<()> {
    if has_at_least("wasm-opt", version) {
        return Ok(());
    }
    let system = match machine() {
        ("x86_64", "linux") => Some("x86_64-linux"),
        ("aarch64", "linux") => Some("aarch64-linux"),
        ("x86_64", "macos") => Some("x86_64-macos"),
        ("aarch64", "macos") => Some("arm64-macos"),
        _ => None,
    };
    let archive = system.map(|system| {
        format!(
            "https://github.com/WebAssembly/binaryen/releases/download/version_{version}/binaryen-version_{version}-{system}.tar.gz"
        )
    });
    let right = || has_at_least("wasm-opt", version);
    first_of(
        &format!("wasm-opt {version}"),
        &[
            ("its project's release", &|| fetch(archive.as_deref(), &["wasm-opt"], right)),
            // Node runs this one, more slowly
            ("npm's binaryen", &|| node("wasm-opt").and_then(|()| npm(NPM_BINARYEN))),
        ],
    )
}

/// Firefox's driver, for which Debian has no package.
pub(crate) fn geckodriver(version: &str) -> Result<()> {
    let right = || has_at_least("geckodriver", version);
    first_of(
        &format!("geckodriver {version}"),
        &[
            ("cargo binstall", &|| binstall("geckodriver", version, right)),
            ("compiled, 1 to 3 minutes", &|| cargo_install("geckodriver", version, &[])),
        ],
    )
}

/// With cargo-binstall if present: it knows where projects publish their binaries.
fn binstall(package: &str, version: &str, right: impl Fn() -> bool) -> Result<()> {
    if find("cargo-binstall").is_none() {
        bail!("there is no cargo-binstall here");
    }
    let mut install = cargo(["binstall", "--no-confirm", "--disable-strategies", "compile", "--root"]);
    output(install.arg(tools()).arg(format!("{package}@{version}")))?;
    // A binary for another libc exists but does not start.
    if right() { Ok(()) } else { bail!("what it fetched does not run here") }
}

/// Installs the named programs from the archive at `url`; they must then be `right`.
fn fetch(url: Option<&str>, programs: &[&str], right: impl Fn() -> bool) -> Result<()> {
    let url = url.context("none is published for this machine")?;
    let scratch = tempfile::tempdir()?;
    let archive = scratch.path().join("archive.tar.gz");
    let mut curl = command("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--proto", "=https"]);
    curl.args(["--connect-timeout", CONNECT_LIMIT, "--max-time", FETCH_LIMIT, "--output"]);
    output(curl.arg(&archive).arg(url))?;
    output(command("tar").arg("-xzf").arg(&archive).arg("-C").arg(scratch.path()))?;
    let files = files_below(scratch.path())?;
    let bin = tools().join("bin");
    fs::create_dir_all(&bin)?;
    let mut placed = Vec::new();
    for program in programs {
        let named = |file: &&std::path::PathBuf| file.file_name().is_some_and(|name| name == *program);
        let file = files.iter().find(named).with_context(|| format!("there is no {program} in it"))?;
        let target = bin.join(program);
        // a running program cannot be overwritten, but another file may take its name
        if target.exists() {
            fs::remove_file(&target)?;
        }
        fs::copy(file, &target)?;
        placed.push(target);
    }
    if right() {
        return Ok(());
    }
    remove(&placed);
    bail!("what was fetched does not run here")
}

fn remove(files: &[impl AsRef<Path>]) {
    for file in files {
        // leftovers will be found again, rejected, and overwritten
        drop(fs::remove_file(file));
    }
}

/// Compiled without optimisation: quick enough as a tool, and several times quicker to install.
fn cargo_install(package: &str, version: &str, options: &[&str]) -> Result<()> {
    let build = tools().join("build");
    // `--force`: an installed one of the wrong version is replaced.
    let mut install = cargo(["install", "--quiet", "--locked", "--debug", "--force", "--version", version]);
    install.args(options).arg("--root").arg(tools()).arg(package);
    install.env("CARGO_TARGET_DIR", &build).env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    let done = run(install.env_remove("RUSTFLAGS"));
    if build.exists() {
        fs::remove_dir_all(&build)?;
    }
    done
}

/// Whether the program is installed in exactly that version.
fn has_version(program: &str, wanted: &str) -> bool {
    Version::new(program).is_some_and(|have| Some(have) == Version::in_text(wanted))
}

/// Whether the program is installed in that version or a newer one.
fn has_at_least(program: &str, wanted: &str) -> bool {
    Version::new(program).is_some_and(|have| Some(have) >= Version::in_text(wanted))
}

/// This machine as in the names of published binaries: processor and system.
fn machine() -> (&'static str, &'static str) {
    (env::consts::ARCH, env::consts::OS)
}

/// Tries `ways` one after another until one succeeds; each that fails says why.
fn first_of(what: &str, ways: &[(&str, &dyn Fn() -> Result<()>)]) -> Result<()> {
    for (way, install) in ways {
        say(&format!("installing {what} ({way})"));
        let started = Instant::now();
        match install() {
            Ok(()) => {
                note(&format!("installed {what} in {} s", started.elapsed().as_secs()));
                return Ok(());
            }
            Err(error) => note(&format!("not that way: {error:#}")),
        }
    }
    bail!("{what} could not be installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_way_is_tried_where_one_fails_and_all_failing_is_an_error() {
        let fails = || bail!("no");
        assert!(first_of("it", &[("first", &fails), ("second", &|| Ok(()))]).is_ok());
        assert!(first_of("it", &[("first", &fails)]).is_err());
    }
}
