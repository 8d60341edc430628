//! Predicted against measured.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

#[path = "../tests/suite/rows.rs"]
mod rows;

use rows::Row;
use shardscope::estimate::compute::{Measured, calibration};
use shardscope::estimate::time::time_with;

fn main() {
    let shown: Vec<String> = std::env::args().skip(1).collect();
    let mut families: Vec<(&str, Vec<f64>)> = Vec::new();
    for row in Row::all() {
        let plan = match row.try_plan() {
            Ok(plan) => plan,
            Err(why) => {
                println!("NO PLAN {} {why}", row.text("id"));
                continue;
            }
        };
        let time = time_with(&plan, &Measured::default(), calibration(&plan.cluster().accelerator));
        let error = time.step.get() / row.measured() - 1.0;
        match families.iter_mut().find(|(family, _)| *family == row.family()) {
            Some((_, errors)) => errors.push(error),
            None => families.push((row.family(), vec![error])),
        }
        if shown.iter().any(|family| family == row.family()) {
            let parts: Vec<String> = time
                .breakdown
                .children()
                .iter()
                .flat_map(|part| {
                    let inner: Vec<_> = part.children().iter().collect();
                    if inner.is_empty() { vec![part] } else { inner }
                })
                .filter(|part| part.value().get() > 0.004 * time.step.get())
                .map(|part| {
                    format!(
                        "{} {:.1}%",
                        &part.label()[..4.min(part.label().len())],
                        100.0 * part.value().get() / time.step.get()
                    )
                })
                .collect();
            println!(
                "{:>22} {}x{} L{} h{} s{} tp{} pp{} v{} cp{} ep{} b{} g{} {} {} t={:.3} p={:.3} {:+.1}% | {}",
                row.text("id")
                    .chars()
                    .rev()
                    .take(22)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .collect::<String>(),
                row.text("gpu"),
                row.text("gpus"),
                row.text("layers"),
                row.text("hidden"),
                row.text("seq"),
                row.text("tp"),
                row.text("pp"),
                row.text("vpp"),
                row.text("cp"),
                row.text("ep"),
                row.text("mbs"),
                row.text("gbs"),
                &row.text("recompute").chars().take(12).collect::<String>(),
                row.text("compute"),
                row.measured(),
                time.step.get(),
                100.0 * error,
                parts.join(" ")
            );
        }
    }
    for (family, errors) in families {
        let mut sorted: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sorted.sort_by(f64::total_cmp);
        let mut signed = errors.clone();
        signed.sort_by(f64::total_cmp);
        println!(
            "{family:26} n={:4} median {:5.1} p90 {:5.1} max {:6.1} bias {:+.1}",
            errors.len(),
            100.0 * sorted[sorted.len() / 2],
            100.0 * sorted[(sorted.len() * 9 / 10).min(sorted.len() - 1)],
            100.0 * sorted[sorted.len() - 1],
            100.0 * signed[signed.len() / 2]
        );
    }
}
