//! The program as installed by `cargo install`.
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{cargo, output, root, run, say, target_folder};
use crate::versions;

/// A run that fits: two layers on one GPU.
const SCRIPT: &str = "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --hidden-size 256 --num-attention-heads 4 \
    --seq-length 512 --micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16\n";

/// Installs the terminal program of this checkout into a separate directory and calls it from an empty one.
///
/// # Errors
/// If it does not install, or if the installed program does not answer.
pub fn test() -> Result<()> {
    let folder = target_folder().join("installed");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    say("cargo install --path crates/cli");
    // The development build, whose dependencies the other tests have compiled; a release build only differs in
    // optimisation.
    let mut install = cargo(["install", "--locked", "--debug", "--quiet", "--path"]);
    run(install.arg(root().join("crates/cli")).arg("--root").arg(&folder))?;
    let program = folder.join("bin").join(format!("shardscope{}", std::env::consts::EXE_SUFFIX));
    let elsewhere = folder.join("empty");
    fs::create_dir_all(&elsewhere)?;
    let version = output(Command::new(&program).arg("--version").current_dir(&elsewhere))?;
    let expected = format!("shardscope {}", versions::version()?);
    if version.trim() != expected {
        bail!("the installed program says {:?}, and not {expected:?}", version.trim());
    }
    // Nothing from the checkout is needed: it reads standard input, and its exit code is the verdict.
    let mut check = Command::new(&program);
    check.args(["check", "--accelerator", "H100-SXM", "-"]).current_dir(&elsewhere).stdin(Stdio::piped());
    let mut child = check.spawn().context("the installed program could not be started")?;
    child.stdin.take().context("no standard input")?.write_all(SCRIPT.as_bytes())?;
    let status = child.wait()?;
    if !status.success() {
        bail!("the installed program ended with {status} where the run fits");
    }
    Ok(())
}
