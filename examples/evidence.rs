//! Writes how close the step time comes to published runs, as Markdown for the README:
//! `cargo run --example evidence`. With `--rows` every row is listed; with names of families, theirs alone
//! with where the time goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use pages::evidence::{Compared, Seen, anchored, compared, ranking, spreads, summary};
use shardscope::estimate::time::time;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let compared = compared();
    if wanted.iter().any(|word| word == "--rows") {
        list(compared);
    } else if wanted.iter().any(|word| word == "--intervals") {
        for spread in spreads(compared) {
            println!("{spread:?}");
        }
        for one in anchored(compared) {
            println!("{one:?}");
        }
        for seen in [Seen::Fitted, Seen::Unseen] {
            let of = ranking(compared, seen);
            let tenth = of.regrets.get(of.groups * 9 / 10).copied().unwrap_or(0.0);
            println!(
                "{seen:?}: {} groups, {} pairs, {:.3} right, {:.3} picked, regret {tenth:.3}",
                of.groups,
                of.pairs,
                of.share(),
                of.picked()
            );
        }
    } else if wanted.is_empty() {
        print!("{}", summary(compared));
    } else {
        detail(compared, &wanted);
    }
}

fn list(compared: &[Compared]) {
    println!("| run | measured s | predicted s | error | cause |");
    println!("|---|---|---|---|---|");
    for one in compared {
        let cause = one.cause.map_or("", |cause| cause.text);
        let (id, measured) = (one.row.text("id"), one.row.measured());
        println!("| {id} | {measured:.3} | {:.3} | {:+.1} % | {cause} |", one.predicted, 100.0 * one.error);
    }
}

fn detail(compared: &[Compared], families: &[String]) {
    let wanted = |one: &&Compared| families.iter().any(|family| family == one.row.text("family"));
    for one in compared.iter().filter(wanted) {
        let row = &one.row;
        let columns = [
            "gpu",
            "gpus",
            "layers",
            "hidden",
            "seq",
            "tp",
            "pp",
            "vpp",
            "cp",
            "ep",
            "mbs",
            "gbs",
            "recompute",
        ];
        let shape: Vec<&str> = columns.iter().map(|column| row.text(column)).collect();
        let estimate = time(&row.try_plan().expect("a plan"));
        let parts = estimate.breakdown.children().iter().flat_map(|part| {
            if part.children().is_empty() { vec![part] } else { part.children().iter().collect() }
        });
        let shares: Vec<String> = parts
            .filter(|part| part.value().get() > 0.004 * estimate.step.get())
            .map(|part| format!("{} {:.1}%", part.label(), 100.0 * part.value().get() / estimate.step.get()))
            .collect();
        println!(
            "{} {} t={:.3} p={:.3} {:+.1}% | {}",
            row.text("id"),
            shape.join(" "),
            row.measured(),
            one.predicted,
            100.0 * one.error,
            shares.join(", ")
        );
    }
}
