//! Checks that randomly drawn plans give the same documents natively and as WebAssembly in Node, Chromium and
//! Firefox, byte for byte, and searches find the same layouts in the same order, to the last bit of their steps.
use std::fs;

use anyhow::{Result, bail};

use crate::install::{self, For};
use crate::process::{cargo, run, say, target_folder};
use crate::twins::{Profile, Twins};

/// Compares the documents of this many plans, and what searches find; fails if a line differs.
pub fn check(plans: u32) -> Result<()> {
    install::install(For::Tests)?;
    compare("shardscope", "drawn_documents", "a document each", &[plans.to_string()])?;
    compare("shardscope-search", "found", "what searches find", &[])
}

fn compare(package: &str, example: &str, what: &str, words: &[String]) -> Result<()> {
    say(&format!("building {example} for this machine and for WebAssembly"));
    let twins = Twins::build(package, example, Profile::Dev)?;
    let (native, wasm) = (twins.natively(words)?, twins.in_node(words)?);
    if native.is_empty() {
        bail!("{example} prints nothing");
    }
    let differing = differing(&native, &wasm);
    let lines = native.lines().count();
    println!("{lines} lines, {what}: {differing} differ between this machine and WebAssembly in Node");
    if differing > 0 {
        bail!("{differing} of {lines} lines differ in Node");
    }
    let folder = target_folder().join("same-everywhere");
    fs::create_dir_all(&folder)?;
    let expected = folder.join(example);
    fs::write(&expected, native)?;
    let browsers = ["run", "--quiet", "--locked", "--package", "e2e", "--bin", "same", "--"];
    run(cargo(browsers).arg(&twins.wasm).arg(&expected).args(words))
}

/// How many lines of two texts differ, position by position.
fn differing(one: &str, other: &str) -> usize {
    let (mut one, mut other) = (one.lines(), other.lines());
    let mut count = 0;
    loop {
        match (one.next(), other.next()) {
            (None, None) => return count,
            (a, b) => count += usize::from(a != b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::differing;

    #[test]
    fn lines_that_differ_or_lack_are_counted() {
        assert_eq!(differing("a\nb\nc\n", "a\nb\nc\n"), 0);
        assert_eq!(differing("a\nb\nc\n", "a\nx\n"), 2);
        assert_eq!(differing("", "a\n"), 1);
    }
}
