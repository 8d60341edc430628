//! How quick searches over whole spaces are, natively and as WebAssembly, and that both find the same: bit for bit, in the same
//! order, with as many layouts decided.

use anyhow::{Context, Result, bail};

use crate::process::root;
use crate::speed::{Side, sides};

/// Layouts that are to be decided in a second of one core: natively, and as WebAssembly.
const AIMS: [f64; 2] = [100_000.0, 50_000.0];
/// As in `crates/search/tests/pairs/mod.rs`.
const PAIRS: [&str; 15] = [
    "llama-3 8b, 8 H100",
    "llama-3 8b, 64 H100",
    "llama-3 70b, 128 H100",
    "llama-3 70b, 128 H100 from nothing",
    "llama-3 405b, 16384 H100",
    "gpt-3 175b, 512 A100",
    "gpt-3 175b, 1024 A100",
    "mixtral 8x7b, 64 H100",
    "qwen3 235b, 256 H100",
    "qwen3 235b, 512 H100",
    "deepseek-v3, 2048 H800",
    "bloom 176b, 384 A100",
    "gpt-3 530b, 2240 A100",
    "gpt-3 1t, 512 A100",
    "gpt-3 175b, 8 A100",
];
/// The guide's table of searches.
const TABLE: &str = "pages/src/guide/searches.tsv";
/// How near to the best a step is a good answer.
const GOOD: f64 = 1.05;

/// Prints the table, writes the guide's where `record`.
///
/// # Errors
/// Where the two do not find the same.
pub fn compare(record: bool) -> Result<()> {
    let (mut native, mut wasm) = sides()?;
    println!(
        "{:36} {:>11} {:>10} {:>22} {:>24}",
        "pair", "layouts", "worked out", "decided/s, native wasm", "good answer, s; all, s"
    );
    let mut table = String::new();
    for (place, name) in PAIRS.iter().enumerate() {
        let both = [Course::of(&mut native, place)?, Course::of(&mut wasm, place)?];
        if both[0].found != both[1].found {
            bail!("{name}: natively {}; as WebAssembly {}", both[0].found, both[1].found);
        }
        let row = row(name, &both);
        println!(
            "{name:36} {:>11} {:>10} {:>11} {:>10} {:>6} {:>5} {:>6} {:>5}",
            row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]
        );
        table.push_str(&row.join("\t"));
        table.push('\n');
    }
    println!("aims: {} and {} decided/s", AIMS[0], AIMS[1]);
    if record {
        let path = root().join(TABLE);
        std::fs::write(&path, table).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// One line of the table: pair, layouts, worked out, rates, times of a good answer, times of all, the best step.
fn row(name: &str, both: &[Course; 2]) -> [String; 10] {
    let [native, wasm] = both;
    let thousands = |course: &Course| format!("{:.0}k", course.decided / course.seconds / 1e3);
    let best = native.course.last().map_or_else(String::new, |(_, step)| format!("{step:.4}"));
    let good = |course: &Course| course.good().map_or_else(String::new, |seconds| format!("{seconds:.2}"));
    [
        name.to_owned(),
        format!("{:.0}", native.decided),
        format!("{:.0}", native.estimated),
        thousands(native),
        thousands(wasm),
        good(native),
        good(wasm),
        format!("{:.2}", native.seconds),
        format!("{:.2}", wasm.seconds),
        best,
    ]
}

/// How a search went.
struct Course {
    /// Unit: second.
    seconds: f64,
    decided: f64,
    estimated: f64,
    found: String,
    /// When the fastest layout became a faster one, and its step. Unit: second.
    course: Vec<(f64, f64)>,
}

impl Course {
    fn of(side: &mut Side, pair: usize) -> Result<Self> {
        let line = side.ask(&pair.to_string())?;
        Self::read(&line).with_context(|| format!("it says {line:?}"))
    }

    fn read(line: &str) -> Option<Self> {
        let mut columns = line.trim_end_matches('\n').split('\t');
        let numbers = |column: &str| -> Option<Vec<f64>> {
            column.split_whitespace().map(|word| word.parse().ok()).collect()
        };
        let [nanoseconds, decided, estimated] = numbers(columns.next()?)?[..] else { return None };
        let found = columns.next()?.to_owned();
        let course = numbers(columns.next()?)?;
        let course = course.chunks_exact(2).map(|pair| (pair[0] / 1e9, pair[1])).collect();
        Some(Self { seconds: nanoseconds / 1e9, decided, estimated, found, course })
    }

    /// When the first layout was found that is nearly as fast as the best. Unit: second.
    fn good(&self) -> Option<f64> {
        let (_, best) = self.course.last()?;
        self.course.iter().find(|(_, step)| *step <= best * GOOD).map(|(seconds, _)| *seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_near_the_best_is_a_good_one() {
        let course = Course::read("2e9 400000 20\ta; b\t1e8 9.5 3e8 4.1 1e9 4.0 \n").unwrap();
        assert_eq!((course.good(), course.found.as_str()), (Some(0.3), "a; b"));
        assert!(Course::read("2e9 400000 20\ta; b\t \n").unwrap().good().is_none());
        assert!(Course::read("").is_none());
    }

    #[test]
    fn the_pairs_are_those_of_the_searches() {
        let source = include_str!("../../crates/search/tests/pairs/mod.rs");
        let names = source.split("const NAMES").nth(1).and_then(|rest| rest.split("];").next()).unwrap();
        let names: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
        assert_eq!(names, PAIRS);
    }
}
