//! Writes how close the step time comes to published runs, as Markdown for the README:
//! `cargo run --example evidence`. With `--rows` every row is listed; with names of families, theirs alone
//! with where the time goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

#[path = "../tests/suite/evidence.rs"]
mod evidence;
#[path = "../tests/suite/rows.rs"]
mod rows;

use evidence::{Compared, Figures, Group, compared};
use shardscope::estimate::time::time;

/// What the peers reach on the same rows, run side by side in November 2026.
const PEERS: &str = "\
| peer | on these rows | error of the step time |
|---|---|---|
| Calculon | Narayanan 2021, table 1 | mean 7.8 %, all rows too fast (3 to 14 %) |
| llm-analysis, FLOPs efficiency 0.5 | Narayanan 2021, table 1 | mean 46 %, worst 134 % |
| Calculon | 48 rows on A100: both tables, Korthikanti, NeMo 22.06 | median 11.8 % |
| SimuMax | the same 48 rows | median 9.2 % |
| llm-analysis | the same 48 rows | median 21 to 26 % |
";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let compared = compared();
    if wanted.iter().any(|word| word == "--rows") {
        list(&compared);
    } else if wanted.is_empty() {
        summary(&compared);
    } else {
        detail(&compared, &wanted);
    }
}

const fn title(group: Group) -> &'static str {
    match group {
        Group::Narayanan => "Narayanan et al. 2021, table 1 (1.7B to 1T)",
        Group::Azure => "Azure NeMo Megatron 2022 (126M to 530B)",
        Group::Korthikanti => "Korthikanti et al. 2022, table 5",
        Group::Dense => "dense, A100 and newer",
        Group::Experts => "mixture of experts",
        Group::Sharded => "sharded weights (FSDP, ZeRO-3)",
        Group::Volta => "V100",
        Group::Ascend => "Ascend 910B",
    }
}

fn summary(compared: &[Compared]) {
    println!("| published runs | rows | median error | 90 % of rows within | within 15 % | bias |");
    println!("|---|---|---|---|---|---|");
    for group in Group::ALL {
        let figures = Figures::of(compared, group, false);
        println!(
            "| {} | {} | {:.1} % | {:.1} % | {:.0} % | {:+.1} % |",
            title(group),
            figures.rows,
            100.0 * figures.median,
            100.0 * figures.tenth,
            100.0 * figures.near,
            100.0 * figures.bias
        );
    }
    let disputed = compared.iter().filter(|one| one.is_disputed()).count();
    println!();
    println!(
        "Of {} rows {disputed} are left out because another record of the same run disagrees or a fact is missing; \
         `tests/data/measured/causes.tsv` names them, and every other row that is off by more than 15 %.",
        compared.len()
    );
    println!();
    print!("{PEERS}");
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
