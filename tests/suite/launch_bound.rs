//! Steps that are only limited by the host: Megatron-LM's functional tests train models of 12 layers, 512 wide, whose
//! arithmetic takes a few milliseconds. They determine what the host spends per kernel, and how processors compare.

use std::collections::BTreeMap;

use pages::evidence::runs;
use shardscope::estimate::time::time;

/// Seconds of a step by run; the launches are those of `memory.jsonl`.
const STEPS: &str = include_str!("../data/measured/launch_bound.tsv");

/// Machine and kind of model, minimum and maximum of the median error.
const BARS: [(&str, f64, f64); 6] = [
    ("A100-SXM-80GB dense", -0.2, 0.2),
    ("A100-SXM-80GB moe", -0.3, 0.3),
    ("GB200 dense", -0.2, 0.2),
    ("GB200 moe", -0.3, 0.3),
    ("H100-SXM dense", -0.2, 0.2),
    ("H100-SXM moe", -0.3, 0.3),
];

#[test]
fn steps_that_only_the_host_bounds_are_met_on_the_whole() {
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in STEPS.lines().skip(1) {
        let [id, kind, seconds] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let run = runs().iter().find(|run| run.id == id).expect("a launch");
        let Some(plan) = &run.resolution.plan else { continue };
        let (estimate, measured) = (time(plan), seconds.parse::<f64>().expect("seconds"));
        let error = estimate.step.get() / measured - 1.0;
        println!(
            "{id} {} {kind} t={} p={} v={} {measured:.4} {:.4} {error:+.2}",
            run.accelerator,
            plan.layout().tensor,
            plan.layout().pipeline,
            plan.layout().virtual_pipeline,
            estimate.step.get()
        );
        errors.entry(format!("{} {kind}", run.accelerator)).or_default().push(error);
    }
    assert_eq!(errors.len(), BARS.len());
    for ((name, errors), (expected, least, most)) in errors.iter_mut().zip(BARS) {
        assert_eq!(name, expected);
        errors.sort_by(f64::total_cmp);
        let median = errors[errors.len() / 2];
        println!(
            "{name}: {} rows, median {median:+.3}, {:+.3} to {:+.3}",
            errors.len(),
            errors[errors.len() / 10],
            errors[errors.len() * 9 / 10]
        );
        assert!((least..=most).contains(&median), "{name}: median {median:+.3}");
    }
}
