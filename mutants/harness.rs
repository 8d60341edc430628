//! Mutants against the pinned plans within one process: it reads a mutant's number from standard input and writes
//! what moved first. `cargo run -p mutants` puts this file into a copy of the repository, next to what it uses.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::{Duration, Instant};

use mutant_switch::{Endless, met, only};

use super::figures::SECTIONS;
use super::numbers::Numbers;
use super::{Plan, rows, table};

/// A section of a plan: the smallest unit that is estimated by itself.
struct Part {
    /// Its row in the table, and its index among those that are plans.
    plan: usize,
    at: usize,
    section: usize,
    /// Its hash in the table.
    hash: u32,
    took: Duration,
    /// How often it checks whether a mutant is on.
    asks: u64,
    /// A bit for each mutant that it reaches.
    meets: Vec<u64>,
}

/// Slowdown relative to no mutant that counts as an endless loop.
const ENDLESS: u64 = 20;

fn hash(section: usize, plan: &Plan) -> u32 {
    let mut numbers = Numbers::new(false);
    SECTIONS[section].1(&mut numbers, plan);
    numbers.hash()
}

#[test]
#[ignore = "answers `cargo run -p mutants`"]
fn answers() {
    let text = table();
    let mut plans = Vec::new();
    let mut parts = Vec::new();
    for (plan, (row, line)) in rows(&text).into_iter().enumerate() {
        // A row that is no longer a plan has no figures, and is skipped.
        let Some(read) = row.plan() else { continue };
        let at = plans.len();
        plans.push(read);
        for (section, pinned) in line.split('\t').skip(2).enumerate() {
            let began = Instant::now();
            let (hash, numbers, asks) = met(|| hash(section, &plans[at]));
            assert_eq!(format!("{hash:08x}"), pinned, "plan {plan} moves without a mutant");
            let mut meets = vec![0; mutant_switch::MOST as usize / 64];
            numbers.iter().for_each(|number| meets[*number as usize / 64] |= 1 << (number % 64));
            parts.push(Part { plan, at, section, hash, took: began.elapsed(), asks, meets });
        }
    }
    parts.sort_by_key(|part| part.took);
    // Panic messages of mutants are not needed.
    std::panic::set_hook(Box::new(|_| {}));
    println!("\n> ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        println!("\n> {}", first_that_moves(line.parse().expect("a number"), &parts, &plans));
    }
}

fn first_that_moves(number: u32, parts: &[Part], plans: &[Plan]) -> String {
    let is_met = |part: &&Part| part.meets[number as usize / 64] >> (number % 64) & 1 == 1;
    let mut met = 0;
    for part in parts.iter().filter(is_met) {
        met += 1;
        let how = match only(number, ENDLESS * part.asks + 10_000, || hash(part.section, &plans[part.at])) {
            Ok(hash) if hash == part.hash => continue,
            Ok(_) => "moved",
            Err(why) if why.is::<Endless>() => "endless",
            Err(_) => "panicked",
        };
        return format!("{how}\tplan {} {}", part.plan, SECTIONS[part.section].0);
    }
    if met == 0 { "unmet\t".to_owned() } else { format!("survived\t{met} sections of plans") }
}

/// Draws plans as `SHARDSCOPE_DRAW` says (`draw.rs:rows`), and prints those in which one of the mutants in the file `MUTANTS`
/// moves a figure that no earlier printed plan caught.
#[test]
#[ignore = "answers `cargo run -p mutants`"]
fn draws() {
    let asked = std::env::var("SHARDSCOPE_DRAW").expect("SHARDSCOPE_DRAW=SEED:COUNT, guide or a file");
    let wanted = std::fs::read_to_string(std::env::var("MUTANTS").expect("a file")).expect("numbers");
    // The number of sections with which each was run.
    let mut wanted: BTreeMap<u32, u32> =
        wanted.lines().filter_map(|line| Some((line.parse().ok()?, 0))).collect();
    std::panic::set_hook(Box::new(|_| {}));
    for row in super::draw::rows(&asked) {
        let Some(plan) = row.plan() else { continue };
        let mut caught = Vec::new();
        for section in 0..SECTIONS.len() {
            let began = Instant::now();
            let (without, numbers, asks) = met(|| hash(section, &plan));
            if began.elapsed() > Duration::from_secs(2) {
                continue;
            }
            for number in numbers {
                let Some(tried) = wanted.get_mut(&number) else { continue };
                *tried += 1;
                let most = ENDLESS * asks + 10_000;
                if *tried > MOST_TRIED
                    || matches!(only(number, most, || hash(section, &plan)), Ok(same) if same == without)
                {
                    continue;
                }
                wanted.remove(&number);
                caught.push(number.to_string());
            }
        }
        if !caught.is_empty() {
            println!("\n> {}\t{}\t{}", row.model, row.link, caught.join(" "));
        }
    }
}

/// A mutant that moves nothing in that many sections will hardly move anything in others.
const MOST_TRIED: u32 = 600;
