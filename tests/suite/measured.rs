//! Predicted memory beside published measurements, family by family. Run with `--nocapture` to see the table.

use std::collections::BTreeMap;

use serde_json::Value;
use shardscope::estimate::{Memory, memory};
use shardscope::intake::shell::Environment;
use shardscope::intake::{Request, read};
use shardscope::text::Source;

const RUNS: &str = include_str!("../data/measured/memory.jsonl");

/// Known gaps: what is off by more than its family's limit, and why. A gap that closes fails the test.
const GAPS: &[(&str, &str)] = &[
    (
        "megatron-ci-338",
        "the last stage holds 90 MiB more between steps with tensor overlap and fp8 weights: not found",
    ),
    ("megatron-ci-339", "as 338"),
    (
        "megatron-ci-410",
        "the same settings were recorded at 54.0 and 56.0 GiB; the lower figure (411) is met",
    ),
    (
        "megatron-ci-414",
        "overlapped expert exchange holds three layers less than the schedule has in flight: not found",
    ),
    ("megatron-ci-448", "Muon's temporaries are not modelled"),
    ("megatron-ci-450", "fine-grained activation offloading is not modelled"),
    ("megatron-ci-451", "as 450"),
    ("megatron-ci-452", "as 450"),
    ("megatron-ci-453", "as 450"),
    ("megatron-ci-456", "experts of different tensor size: 40 MiB of a small run's exchange"),
    (
        "zero-bubble-013",
        "about 7 % of what moves is missing at the smallest model; its figure grows with the micro-batches",
    ),
    ("zero-bubble-015", "as 013"),
    ("zero-bubble-017", "as 013"),
    (
        "bloom-prequel-091",
        "14 GiB below the same settings with another batch size (090, met): the source's own scatter",
    ),
    ("bloom-prequel-126", "17 GiB below near relatives (128 to 130, met): the source's own scatter"),
    (
        "bigscience-1b3-v100-005",
        "pipelined runs on V100 show 2 to 3 GiB less than the same terms on A100: buckets fit into freed room",
    ),
    ("bigscience-1b3-v100-006", "as 005"),
    ("bigscience-1b3-v100-007", "as 005, and a loss of half the size"),
    ("bigscience-1b3-v100-014", "as 005"),
    ("bigscience-1b3-v100-019", "as 005"),
    ("bigscience-1b3-v100-020", "as 005"),
    ("bigscience-gpt2-v100-035", "6 GiB above the same settings of 031 and 034: the source's own scatter"),
    ("torchtitan-013", "torch's pipeline keeps every micro-batch's output on the last stage; not modelled"),
    ("torchtitan-014", "as 013"),
    ("torchtitan-018", "as 013"),
];

/// Runs of models that are not estimated: hybrid (Mamba) layers.
const NOT_ESTIMATED: &[&str] = &["megatron-ci-342", "megatron-ci-461", "megatron-ci-462"];

/// Out-of-memory verdicts that are missed, and why.
const MISSED_VERDICTS: &[(&str, &str)] = &[
    ("bloom-prequel-096", "fits only with all that the allocator can give back"),
    (
        "bloom-prequel-147",
        "11 GiB are left by the terms that meet its neighbours 128 to 131; no cause is published",
    ),
    (
        "bigscience-1b3-v100-008",
        "half its micro-batch (007) was seen at 15 of 32 GiB: nothing lasting explains it",
    ),
];

/// Largest relative error of one figure, and of the median, in per cent; and the unit to which figures were printed,
/// in GiB.
struct Limit {
    each: f64,
    median: f64,
    unit: f64,
}

fn limit(family: &str) -> Limit {
    let limit = |each, median, unit| Limit { each, median, unit };
    match family {
        "simumax-b200 allocated" => limit(0.5, 0.1, 0.0),
        "simumax-b200 reserved" => limit(6.0, 3.0, 0.0),
        "megatron-ci allocated" => limit(4.0, 0.6, 0.0),
        "zero-bubble allocated" => limit(6.0, 2.0, 1.0),
        "bloom-prequel device" => limit(11.0, 4.0, 1.0),
        "bigscience-1b3-v100 device" | "bigscience-gpt2-v100 device" => limit(13.0, 18.0, 1.0),
        "torchtitan reserved" => limit(11.0, 10.0, 0.0),
        "ms-swift reserved" => limit(5.0, 5.0, 1.0),
        _ => panic!("a family without a limit: {family}"),
    }
}

/// One published run.
struct Run {
    id: String,
    family: String,
    figures: Value,
    memory: Option<Memory>,
}

fn runs() -> Vec<Run> {
    let mut out = Vec::new();
    for line in RUNS.lines() {
        let group: Value = serde_json::from_str(line).expect("JSON");
        for row in group["rows"].as_array().expect("rows") {
            out.push(Run {
                id: format!("{}-{}", text(&group["family"]), text(&row["id"])),
                family: text(&group["family"]).to_owned(),
                figures: row.clone(),
                memory: predicted(&group, row),
            });
        }
    }
    out
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// The memory of the run as its launch script gives it.
fn predicted(group: &Value, row: &Value) -> Option<Memory> {
    let gpus = row["gpus"].as_u64().expect("GPUs");
    let per_node = row["per_node"].as_u64().unwrap_or(8).min(gpus);
    let mut script = String::new();
    for setting in group["env"].as_array().into_iter().flatten() {
        script.push_str(&format!("export {}\n", text(setting)));
    }
    script.push_str(&format!(
        "torchrun --nnodes {} --nproc_per_node {per_node} pretrain_gpt.py",
        gpus.div_ceil(per_node)
    ));
    for word in text(&group["flags"]).split(' ') {
        script.push_str(&format!(" '{word}'"));
    }
    let mut overrides = vec![("accelerator".to_owned(), text(&row["gpu"]).to_owned())];
    for (name, value) in group["set"].as_object().into_iter().flatten() {
        overrides.push((name.clone(), text(value).to_owned()));
    }
    let source = Source::new(&script);
    let reading =
        read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
    reading.plan.map(|plan| memory(&plan))
}

/// What was measured of a run, with the family of the figure and the prediction, in GiB.
fn figures(run: &Run) -> Vec<(String, f64, f64)> {
    let (Some(memory), figures) = (&run.memory, &run.figures) else { return Vec::new() };
    let kind = |kind: &str| format!("{} {kind}", run.family);
    let ranks = || memory.ranks.iter().map(|rank| rank.totals);
    let most = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    let mut out = Vec::new();
    if let Some(bytes) = figures["peak"].as_f64() {
        let stage = figures["stage"].as_u64().expect("a stage") as usize;
        let peak = memory.ranks[stage].totals.peak_allocated.in_gib();
        out.push((kind("allocated"), bytes / 1_073_741_824.0, peak));
    }
    for stage in figures["stages"].as_array().into_iter().flatten() {
        let totals = memory.ranks[stage[0].as_u64().expect("a stage") as usize].totals;
        out.push((kind("allocated"), stage[1].as_f64().expect("GiB"), totals.peak_allocated.in_gib()));
        out.push((kind("reserved"), stage[2].as_f64().expect("GiB"), totals.peak_cached.in_gib()));
    }
    if let Some(gib) = figures["peak_gib"].as_f64() {
        out.push((kind("allocated"), gib, most(ranks().map(|rank| rank.peak_allocated.in_gib()).collect())));
    }
    if let Some(gib) = figures["reserved_gib"].as_f64() {
        out.push((kind("reserved"), gib, most(ranks().map(|rank| rank.peak_cached.in_gib()).collect())));
    }
    if let Some(gib) = figures["smi_gib"].as_f64() {
        out.push((kind("device"), gib, memory.worst.peak_reserved.in_gib()));
    }
    out
}

/// Relative error in per cent; a figure printed to a whole unit may be half a unit off.
fn error(measured: f64, predicted: f64, unit: f64) -> f64 {
    let off = (predicted - measured).abs() - unit / 2.0;
    100.0 * off.max(0.0).copysign(predicted - measured) / measured
}

fn median(errors: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    sizes[sizes.len() / 2]
}

fn gap(id: &str) -> Option<&'static str> {
    GAPS.iter().find(|(name, _)| *name == id).map(|(_, reason)| *reason)
}

#[test]
fn measured_memory_is_met_family_by_family() {
    let mut families: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for run in runs() {
        assert_eq!(run.memory.is_none(), NOT_ESTIMATED.contains(&run.id.as_str()), "{}", run.id);
        let mut worst: f64 = 0.0;
        for (family, measured, predicted) in figures(&run) {
            let limit = limit(&family);
            let off = error(measured, predicted, limit.unit);
            worst = worst.max(off.abs() / limit.each);
            if off.abs() > limit.each && gap(&run.id).is_none() {
                wrong.push(format!(
                    "{} {family}: {measured:.3} GiB, {predicted:.3} predicted, {off:+.2} %",
                    run.id
                ));
            }
            families.entry(family).or_default().push(error(measured, predicted, 0.0));
        }
        if worst <= 1.0 && gap(&run.id).is_some() {
            wrong.push(format!("{}: the gap is closed", run.id));
        }
    }
    println!("family                          figures  median  90 %   within 1 %  within 4 %");
    for (family, errors) in &families {
        let share = |limit: f64| {
            100.0 * errors.iter().filter(|error| error.abs() <= limit).count() as f64 / errors.len() as f64
        };
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let most = sizes[(sizes.len() * 9 / 10).min(sizes.len() - 1)];
        let (one, four, middle) = (share(1.0), share(4.0), median(errors));
        println!("{family:31} {:7} {middle:6.2} % {most:5.1} % {one:9.1} % {four:9.1} %", errors.len());
        if middle > limit(family).median {
            wrong.push(format!("{family}: median {middle:.2} %"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bars that the families together must clear.
#[test]
fn the_bars_are_cleared() {
    let mut outside = Vec::new();
    let mut ci = Vec::new();
    for run in runs() {
        for (family, measured, predicted) in figures(&run) {
            let off = error(measured, predicted, 0.0);
            if family.ends_with("device") || family.ends_with("reserved") {
                outside.push(off);
            } else if family.starts_with("megatron-ci") {
                ci.push(off);
            }
        }
    }
    assert!(median(&outside) <= 5.0, "reserved and device: median {:.2} %", median(&outside));
    let near = ci.iter().filter(|error| error.abs() <= 4.0).count() as f64 / ci.len() as f64;
    assert!(
        median(&ci) <= 1.0 && near >= 0.9,
        "Megatron CI: median {:.2} %, {near:.3} within 4 %",
        median(&ci)
    );
}

/// Runs that ran out of memory are said not to fit, and runs that ran are said to fit.
#[test]
fn verdicts_are_right() {
    let mut wrong = Vec::new();
    for run in runs() {
        let Some(memory) = &run.memory else { continue };
        let ran_out = run.figures["oom"].as_bool() == Some(true);
        let missed = MISSED_VERDICTS.iter().any(|(name, _)| *name == run.id);
        if (memory.fits == ran_out) != missed {
            wrong.push(format!(
                "{}: {} of {}, missed: {missed}",
                run.id,
                memory.worst.peak_reserved.in_gib(),
                memory.capacity.in_gib()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
