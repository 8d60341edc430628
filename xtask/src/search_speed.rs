//! How many layouts per second and core searches over complete spaces decide, natively and as WebAssembly in Node (as
//! the page is compiled), and whether both find the same, bit for bit.
use std::fs;

use anyhow::{Result, bail};

use crate::install::{self, For};
use crate::process::{command, run, say, target_folder};
use crate::twins::{Profile, Twins, in_node};

/// What `crates/search/examples/whole.rs --columns` prints for a pair of model and cluster.
struct Row<'a> {
    pair: &'a str,
    /// Layouts decided, layouts fully estimated.
    counts: [&'a str; 2],
    /// Layouts decided per second and core; seconds until a good answer and until all were decided.
    times: [&'a str; 3],
    /// The best step, and the digest of everything found.
    best: [&'a str; 2],
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Result<Self> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [pair, layouts, worked, rate, good, all, step, digest] = columns[..] else {
            bail!("eight columns were expected: {line:?}")
        };
        Ok(Self { pair, counts: [layouts, worked], times: [rate, good, all], best: [step, digest] })
    }

    /// Whether another run decided and found the same; how long it took may differ.
    fn is_same(&self, other: &Self) -> bool {
        (self.pair, self.counts, self.best) == (other.pair, other.counts, other.best)
    }
}

/// Prints the table; fails if the two do not find the same. With `part`, only pairs whose names contain it.
pub fn compare(part: Option<&str>) -> Result<()> {
    install::install(For::Page)?;
    say("building the search for this machine and for WebAssembly");
    let twins = Twins::build("shardscope-search", "whole", Profile::Speed)?;
    // The same optimisation pass as for the page.
    let folder = target_folder().join("search-speed");
    fs::create_dir_all(&folder)?;
    let program = folder.join("whole.wasm");
    run(command("wasm-opt").arg("-O4").arg(&twins.wasm).arg("-o").arg(&program))?;
    let words: Vec<String> = ["--columns"].into_iter().chain(part).map(str::to_owned).collect();
    let native = twins.natively(&words)?;
    let wasm = in_node(&program, &words)?;
    let rows = native.lines().zip(wasm.lines()).map(|(one, other)| Ok((Row::read(one)?, Row::read(other)?)));
    let rows: Vec<(Row, Row)> = rows.collect::<Result<_>>()?;
    if rows.is_empty() {
        bail!("no pair's name holds {:?}", part.unwrap_or_default());
    }
    if native.lines().count() != wasm.lines().count() {
        bail!("{} pairs natively and {} as WebAssembly", native.lines().count(), wasm.lines().count());
    }
    println!(
        "{:34} {:>12} {:>10}   {:>10} {:>10}   {:>8} {:>8}   {:>8} {:>8}   best step",
        "pair", "layouts", "worked out", "rate", "wasm", "good", "wasm", "all", "wasm"
    );
    for (one, other) in &rows {
        let [[rate, good, all], [wasm_rate, wasm_good, wasm_all]] = [one.times, other.times];
        let [layouts, worked] = one.counts;
        println!(
            "{:34} {layouts:>12} {worked:>10}   {rate:>10} {wasm_rate:>10}   {good:>8} {wasm_good:>8}   {all:>8} {wasm_all:>8}   {}",
            one.pair, one.best[0]
        );
    }
    let differing: Vec<&str> =
        rows.iter().filter(|(one, other)| !one.is_same(other)).map(|(one, _)| one.pair).collect();
    if !differing.is_empty() {
        bail!("not the same as WebAssembly: {}", differing.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_whatever_they_took() {
        let row = |line| Row::read(line).unwrap();
        let one = row("8B on 8\t100\t10\t5\t1\t2\t1.5\t3ff8");
        assert!(one.is_same(&row("8B on 8\t100\t10\t4\t2\t3\t1.5\t3ff8")));
        assert!(!one.is_same(&row("8B on 8\t100\t10\t5\t1\t2\t1.5\t3ff9")));
        assert!(!one.is_same(&row("8B on 8\t101\t10\t5\t1\t2\t1.5\t3ff8")));
        assert!(Row::read("8B on 8\t100").is_err());
    }
}
