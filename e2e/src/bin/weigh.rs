//! `weigh FOLDER`: prints what the built page and what stands beside it weigh, and fails where the page is above the limit.
use std::env;
use std::path::Path;
use std::process::ExitCode;

use e2e::weight::{Weight, judge, weigh};

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
    let sum = |beside: bool, of: fn(&Weight) -> u64| -> u64 {
        weights.iter().filter(|weight| weight.beside == beside).map(of).sum()
    };
    let total = sum(false, |weight| weight.brotli);
    for (beside, what) in [(false, "what the page loads"), (true, "beside the page, not loaded by it")] {
        println!(
            "{:>10} {:>10}  {what}",
            sum(beside, |weight| weight.raw),
            sum(beside, |weight| weight.brotli)
        );
    }
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
