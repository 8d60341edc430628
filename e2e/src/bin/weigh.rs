//! `weigh FOLDER`: prints what the built page weighs and fails above the limit.
use std::env;
use std::path::Path;
use std::process::ExitCode;

use e2e::weight::{judge, weigh};

fn main() -> ExitCode {
    let Some(folder) = env::args().nth(1) else {
        eprintln!("usage: weigh FOLDER");
        return ExitCode::FAILURE;
    };
    let weights = match weigh(Path::new(&folder)) {
        Ok(weights) => weights,
        Err(error) => return fail(&format!("{folder}: {error}")),
    };
    if !weights.iter().any(|weight| weight.file == Path::new("index.html")) {
        return fail(&format!("{folder} holds no page"));
    }
    println!("{:>10} {:>10}  file", "bytes", "brotli 11");
    for weight in &weights {
        println!("{:>10} {:>10}  {}", weight.raw, weight.brotli, weight.file.display());
    }
    let total: u64 = weights.iter().map(|w| w.brotli).sum();
    println!("{:>10} {total:>10}  the whole page", weights.iter().map(|w| w.raw).sum::<u64>());
    match judge(total) {
        Ok(words) => println!("{words}"),
        Err(words) => return fail(&words),
    }
    ExitCode::SUCCESS
}

fn fail(what: &str) -> ExitCode {
    eprintln!("error: {what}");
    ExitCode::FAILURE
}
