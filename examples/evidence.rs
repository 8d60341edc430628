//! Writes how close the step time comes to published runs, as Markdown for the README:
//! `cargo run --example evidence`. With `--rows` every row is listed; with names of families, theirs alone
//! with where the time goes. With `--memory` every memory figure is listed instead, or those of the families named.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use pages::evidence::{Compared, Seen, anchored, compared, pasted, ranking, runs, spreads, summary};
use shardscope::estimate::time::time;
use shardscope::explain::Breakdown;
use shardscope::units::Bytes;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.first().is_some_and(|word| word == "--memory") {
        return list_memory(&wanted[1..]);
    }
    let compared = compared();
    if wanted.iter().any(|word| word == "--pastes") {
        list_pastes();
    } else if wanted.iter().any(|word| word == "--rows") {
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
    println!("| run | measured s | predicted s | error | left out | cause |");
    println!("|---|---|---|---|---|---|");
    for one in compared {
        let cause = one.cause.map_or("", |cause| cause.text);
        let (id, measured) = (one.row.text("id"), one.row.measured());
        let [error, unseen] = [one.error, one.unseen].map(|error| 100.0 * error);
        println!(
            "| {id} | {measured:.3} | {:.3} | {error:+.1} % | {unseen:+.1} % | {cause} |",
            one.predicted
        );
    }
}

fn list_pastes() {
    println!("| run | release | measured s | complete settings | paste | paste over settings |");
    println!("|---|---|---|---|---|---|");
    for one in pasted() {
        let (row, percent) = (&one.of.row, |share: f64| format!("{:+.1} %", 100.0 * share));
        let (id, measured) = (row.text("id"), row.measured());
        let said: Vec<&str> = one.resolution.diagnostics.iter().map(|said| said.message.as_str()).collect();
        let error = one.error().map_or_else(|| format!("no plan: {}", said.join("; ")), percent);
        let apart = one.apart().map_or(String::new(), percent);
        println!(
            "| {id} | {} | {measured:.3} | {} | {error} | {apart} |",
            one.release,
            percent(one.of.error)
        );
    }
}

fn list_memory(families: &[String]) {
    println!("| run | counted | measured GiB | predicted GiB | error | fits |");
    println!("|---|---|---|---|---|---|");
    for run in runs().iter().filter(|run| families.is_empty() || families.contains(&run.family)) {
        let fits = run.memory.as_ref().is_some_and(|memory| memory.fits);
        if run.ran_out {
            println!("| {} | ran out of memory | | | | {fits} |", run.id);
        }
        for figure in run.figures() {
            let (measured, predicted) = (figure.measured, figure.predicted);
            let error = 100.0 * (predicted / measured - 1.0);
            println!(
                "| {} | {} | {measured:.2} | {predicted:.2} | {error:+.1} % | {fits} |",
                run.id,
                figure.counted.name()
            );
        }
        if let Some(memory) = run.memory.as_ref().filter(|_| !families.is_empty()) {
            let peaks = memory.ranks.iter().map(|rank| format!("{:.2}", rank.totals.peak_cached.in_gib()));
            println!("  reserved on each pipeline rank: {}", peaks.collect::<Vec<_>>().join(" "));
            let worst = memory.ranks.iter().find(|rank| rank.pipeline_rank == memory.worst.pipeline_rank);
            worst.into_iter().for_each(|rank| tree(&rank.breakdown, 1));
        }
    }
}

/// The parts of a figure above 1 % of a GiB, four levels deep.
fn tree(node: &Breakdown<Bytes>, depth: usize) {
    const DEEPEST: usize = 6;
    for child in node.children() {
        if child.value().in_gib() >= 0.01 && depth < DEEPEST {
            println!("{}{} {:.2} GiB", "  ".repeat(depth), child.label(), child.value().in_gib());
            tree(child, depth + 1);
        }
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
