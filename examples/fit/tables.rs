//! What the fitted constants rest on: steps that the host bounds, and how many rows feel each constant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use pages::evidence::{Row, compared, digest};
use shardscope::estimate::compute::{CALIBRATIONS, ISSUES, Issue, PROCESSORS, Share};
use shardscope::estimate::time::{step_seconds, step_seconds_issued, step_seconds_with};
use shardscope::plan::Plan;

/// Makes one part of what a kernel costs its host less.
type Lessen = fn(&mut Issue);

/// Steps that only the host bounds, by machine.
pub(crate) fn hosts() {
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in include_str!("../../tests/data/measured/launch_bound.tsv").lines().skip(1) {
        let [id, kind, seconds] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let run = pages::evidence::runs().iter().find(|run| run.id == id).expect("a launch");
        let Some(plan) = &run.resolution.plan else { continue };
        let predicted = shardscope::estimate::time::step_seconds(plan).get();
        let layout = plan.layout();
        let name = format!("{} {kind} TP {} PP {}", run.accelerator, layout.tensor, layout.pipeline);
        errors.entry(name).or_default().push(predicted / seconds.parse::<f64>().unwrap() - 1.0);
    }
    for (name, mut errors) in errors {
        errors.sort_by(f64::total_cmp);
        println!("{name}: {} rows, median {:+.2}", errors.len(), errors[errors.len() / 2]);
    }
}

/// Rows of a generation that feel a constant: a tenth more or less of it moves their step by more than this.
const FELT: f64 = 0.005;

/// Writes for each constant of each set, of each software's host and of each processor how many rows of how many sources feel it.
pub(crate) fn sensitivity() {
    let mut table = "generation\tconstant\trows\tsources\tof_rows\tmoves\n".to_owned();
    let rows: Vec<(&str, Plan)> = Row::all()
        .into_iter()
        .filter(Row::is_fitted)
        .map(|row| (row.family(), row.try_plan().unwrap()))
        .collect();
    for set in &CALIBRATIONS {
        let own = |plan: &Plan| plan.cluster().accelerator.generation == set.generation;
        for share in Share::ALL.iter().chain(&Share::FIXED) {
            let mut tried = *set;
            share.set(&mut tried, share.value(set) * LESS);
            let felt = Felt::new(&rows, &own, &|plan| step_seconds_with(plan, tried).get());
            felt.write(&mut table, set.generation.name(), share.name());
        }
    }
    for of in ISSUES.map(|issue| issue.name) {
        let own = |plan: &Plan| issue_of(plan).name == of;
        let parts: [(&str, Lessen); 4] = [
            ("forward", |issue| issue.forward = issue.forward * LESS),
            ("backward", |issue| issue.backward = issue.backward * LESS),
            ("kernel", |issue| issue.kernel = issue.kernel * LESS),
            ("message", |issue| issue.message = issue.message * LESS),
        ];
        for (name, lessen) in parts {
            let felt = Felt::new(&rows, &own, &|plan| {
                let mut tried = issue_of(plan);
                lessen(&mut tried);
                step_seconds_issued(plan, tried).get()
            });
            felt.write(&mut table, of, name);
        }
    }
    for of in PROCESSORS {
        let own = |plan: &Plan| plan.cluster().accelerator.processor == of.processor;
        let felt = Felt::new(&rows, &own, &|plan| {
            let issue = issue_of(plan);
            let [forward, backward] = [issue.forward, issue.backward].map(|time| time * LESS);
            let (kernel, message) = (issue.kernel * LESS, issue.message * LESS);
            step_seconds_issued(plan, Issue { forward, backward, kernel, message, ..issue }).get()
        });
        felt.write(&mut table, of.source.split([',', ';', ':']).next().unwrap_or(of.source), "share");
    }
    std::fs::write("tests/data/measured/sensitivity.tsv", table).unwrap();
    computed("sensitivity.tsv");
}

/// A tenth less.
const LESS: f64 = 0.9;

fn issue_of(plan: &Plan) -> Issue {
    Issue::new(plan.recipe(), &plan.cluster().accelerator)
}

/// Rows that feel a constant.
struct Felt {
    moved: Vec<f64>,
    sources: BTreeSet<&'static str>,
    of: usize,
}

impl Felt {
    /// Of those that `own` holds, by what `tried` makes of each.
    fn new(rows: &[(&'static str, Plan)], own: &dyn Fn(&Plan) -> bool, tried: &dyn Fn(&Plan) -> f64) -> Self {
        let mut felt = Self { moved: Vec::new(), sources: BTreeSet::new(), of: 0 };
        for (source, plan) in rows.iter().filter(|(_, plan)| own(plan)) {
            felt.of += 1;
            let by = (tried(plan) / step_seconds(plan).get() - 1.0).abs();
            if by > FELT {
                felt.moved.push(by);
                felt.sources.insert(source);
            }
        }
        felt.moved.sort_by(f64::total_cmp);
        felt
    }

    fn write(&self, table: &mut String, of: &str, constant: &str) {
        let middle = self.moved.get(self.moved.len() / 2).copied().unwrap_or(0.0);
        let (rows, sources) = (self.moved.len(), self.sources.len());
        writeln!(table, "{of}\t{constant}\t{rows}\t{sources}\t{}\t{middle:.3}", self.of).unwrap();
    }
}

/// Notes what `table` was computed from: `tests/suite/interval.rs` fails where that has changed.
pub(crate) fn computed(table: &str) {
    let path = "tests/data/measured/computed.tsv";
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let others = before.lines().skip(1).filter(|line| !line.starts_with(table));
    let mut lines: Vec<String> = others.map(str::to_owned).collect();
    lines.push(format!("{table}\t{}", digest(compared())));
    lines.sort();
    std::fs::write(path, format!("table\tdigest\n{}\n", lines.join("\n"))).unwrap();
}
