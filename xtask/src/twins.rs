//! Examples that are built twice, for this machine and as WebAssembly, and must print the same.
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::install;
use crate::process::{cargo, command, output, root, run, target_folder};

/// The target of programs that Node and the browsers run as commands.
pub(crate) const WASI: &str = "wasm32-wasip1";

/// How an example is compiled: Cargo's profile natively, and the one for WebAssembly.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Both unoptimised.
    Dev,
    /// Natively at full optimisation, WebAssembly as the page is compiled.
    Speed,
}

impl Profile {
    /// Cargo's arguments and output directory, natively.
    fn native(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Dev => (&[], "debug"),
            // Cargo puts what the bench profile builds into `release`.
            Self::Speed => (&["--profile", "bench"], "release"),
        }
    }

    /// The same as WebAssembly.
    fn wasm(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Dev => (&[], "debug"),
            Self::Speed => (&["--release"], "release"),
        }
    }
}

/// The two programs.
pub(crate) struct Twins {
    pub(crate) native: PathBuf,
    pub(crate) wasm: PathBuf,
}

impl Twins {
    /// Builds an example of a package both ways.
    pub(crate) fn build(package: &str, example: &str, profile: Profile) -> Result<Self> {
        install::install(install::For::Node)?;
        install::target_of(WASI)?;
        let program = ["build", "--quiet", "--locked", "--package", package, "--example", example];
        let (words, native) = profile.native();
        run(cargo(program).args(words))?;
        let (words, wasm) = profile.wasm();
        run(cargo(program).args(words).args(["--target", WASI]))?;
        let folder = target_folder();
        Ok(Self {
            native: folder.join(native).join("examples").join(example),
            wasm: folder.join(WASI).join(wasm).join("examples").join(format!("{example}.wasm")),
        })
    }

    /// What the native one prints.
    pub(crate) fn natively(&self, words: &[String]) -> Result<String> {
        output(command(&self.native.to_string_lossy()).args(words))
    }

    /// What the other one prints in Node.
    pub(crate) fn in_node(&self, words: &[String]) -> Result<String> {
        in_node(&self.wasm, words)
    }
}

/// What a program of WebAssembly prints in Node.
pub(crate) fn in_node(program: &Path, words: &[String]) -> Result<String> {
    let runner = root().join("xtask/wasi.mjs");
    output(command("node").arg("--no-warnings").arg(runner).arg(program).args(words))
}
