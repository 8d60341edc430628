//! The JavaScript package: built into `npm/dist`, and tested in Node against the terminal's document.
use std::fs;

use anyhow::{Context, Result};

use crate::fingerprint::files_below;
use crate::install::{self, For, WASM};
use crate::packages::{NpmPackage, npm};
use crate::process::{cargo, command, root, run, say, target_folder, tools};
use crate::twins::WASI;

/// Files that the package takes unchanged from `npm/`.
const FILES: [&str; 6] = ["index.js", "index.d.ts", "node.js", "command.js", "package.json", "README.md"];

/// Checks the package's types against its documents.
const TYPESCRIPT: NpmPackage = NpmPackage {
    name: "typescript",
    version: "5.9.3",
    integrity: "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
};

/// Builds the package.
pub fn build() -> Result<()> {
    install::install(For::Page)?;
    say("building the JavaScript package");
    run(&mut cargo(["build", "--release", "--locked", "--package", "shardscope-js", "--target", WASM]))?;
    let (from, out) = (root().join("npm"), root().join("npm/dist"));
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let module = target_folder().join(WASM).join("release/shardscope_js.wasm");
    run(command("wasm-bindgen").args(["--target", "web", "--out-dir"]).arg(&out).arg(module))?;
    let engine = out.join("shardscope_js_bg.wasm");
    run(command("wasm-opt").arg("-O2").arg(&engine).arg("-o").arg(&engine))?;
    install::target_of(WASI)?;
    run(&mut cargo(["build", "--release", "--locked", "--package", "shardscope-cli", "--target", WASI]))?;
    let program = target_folder().join(WASI).join("release/shardscope.wasm");
    run(command("wasm-opt").arg("-Oz").arg(program).arg("-o").arg(out.join("shardscope.wasm")))?;
    for file in FILES {
        fs::copy(from.join(file), out.join(file)).with_context(|| format!("npm/{file}"))?;
    }
    for file in files_below(&from.join("examples"))? {
        let target = out.join(file.strip_prefix(&from)?);
        fs::create_dir_all(target.parent().unwrap_or(&out))?;
        fs::copy(&file, target)?;
    }
    Ok(())
}

/// Tests what [`build`] has made.
pub fn test() -> Result<()> {
    install::install(For::Node)?;
    run(&mut cargo(["build", "--locked", "--package", "shardscope-cli"]))?;
    let report = target_folder().join("debug/shardscope");
    let compiler = tools().join("npm/node_modules/typescript/lib/tsc.js");
    if !compiler.is_file() {
        npm(TYPESCRIPT)?;
    }
    run(command("node").args(["--test", "npm/test/"]).env("SHARDSCOPE_REPORT", report).env("TSC", compiler))
}
