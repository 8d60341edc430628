//! The Python wheel: built by maturin, installed into a separate environment, and tested there as a user would call
//! it.
use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::packages::{pip, python_programs};
use crate::process::{command, output, root, run, say, target_folder};
use crate::versions;

/// Requirement of the build backend, for pip.
const MATURIN: &str = "maturin>=1.9,<2";
/// The client of the Model Context Protocol that talks to `shardscope mcp`.
const CLIENT: &str = "mcp>=2,<3";

/// Runs the repository's hook as a user's commit does.
const HOOKS: &str = "pre-commit>=4,<5";

/// What the notebook's widget stands on, as `pyproject.toml` has it.
const WIDGET: &str = "anywidget>=0.9,<1";

/// What the README's rows are put into, and what its types are held against.
const TABLES: &str = "pandas>=2,<4";
const TYPES: &str = "mypy>=1.11,<3";

/// `uvx`, by which most people will call the program.
const UV: &str = "uv>=0.8,<1";

/// Builds a wheel of the development build and tests it.
pub fn test() -> Result<()> {
    let folder = target_folder().join("wheel");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    pip(MATURIN)?;
    let maturin = python_programs().join("maturin");
    say("building the Python wheel");
    run(command(&maturin.to_string_lossy())
        .args(["build", "--locked", "--profile", "dev", "--out"])
        .arg(folder.join("out")))?;
    let Some(wheel) =
        fs::read_dir(folder.join("out"))?.filter_map(Result::ok).map(|entry| entry.path()).next()
    else {
        bail!("maturin built no wheel");
    };
    output(command("python3").args(["-m", "venv"]).arg(folder.join("environment")))
        .context("a virtual environment for the wheel")?;
    let python = folder.join("environment/bin/python").to_string_lossy().into_owned();
    // Without an index: the wheel depends on no other package.
    output(command(&python).args(["-m", "pip", "install", "--quiet", "--no-index"]).arg(&wheel))?;
    // Without one of them its tests say that they were not made, which is no answer in continuous integration.
    for package in [CLIENT, HOOKS, WIDGET, TABLES, TYPES] {
        let installed = output(command(&python).args(["-m", "pip", "install", "--quiet", package]));
        if env::var_os("CI").is_some() {
            installed.with_context(|| format!("{package} for the tests of the wheel"))?;
        }
    }
    called_by_uvx(&folder, &python)?;
    run(command(&python)
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(root().join("packages/python/tests"))
        .env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// Calls the program of the wheel in `folder` as `uvx shardscope` will, in an environment that uv makes of it alone.
fn called_by_uvx(folder: &Path, python: &str) -> Result<()> {
    pip(UV)?;
    let mut call = command(&python_programs().join("uvx").to_string_lossy());
    // Of nobody else: neither an index nor what uv keeps for its user.
    call.args(["--no-config", "--offline", "--no-index", "--python", python, "--find-links"]);
    call.arg(folder.join("out")).args(["shardscope", "--version"]).env("UV_CACHE_DIR", folder.join("uv"));
    let (said, expected) = (output(&mut call)?, format!("shardscope {}", versions::version()?));
    if said.trim() != expected {
        bail!("uvx shardscope says {:?}, and not {expected:?}", said.trim());
    }
    Ok(())
}
