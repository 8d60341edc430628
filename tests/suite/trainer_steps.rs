//! Seconds per step of transformers' Trainer on one H200, measured by this project (`tests/record/trainer_on_gpu.py`,
//! `tests/record/families_on_gpu.py`), some again on up to three others of the same kind
//! (`tests/record/profile_on_gpu.py`): steps that wait for the host differ by up to a factor of two, others by
//! 4 %. The least counts, since what disturbs a virtual machine's host only adds.
//! No constant was fitted to them; those of single kernels and of the host are measured separately (`kernels.rs`,
//! `kernels_in_steps.rs`, `kernels_of_a_layer.rs`).

use std::collections::BTreeMap;

use pages::evidence::runs;
use shardscope::estimate::time::time;

/// Seconds of a step by run; the launches are those of `memory.jsonl`.
const STEPS: &str = include_str!("../data/measured/trainer_steps.tsv");

/// Training method, runs, and the maximum of the median and of the largest error in per cent.
const BARS: [(&str, usize, f64, f64); 5] = [
    ("full", 21, 5.2, 34.5),
    ("lora", 11, 4.7, 14.5),
    ("qlora", 5, 7.6, 21.5),
    ("families", 12, 5.3, 16.0),
    // The largest is Qwen3-Next's without flash-linear-attention, whose 6,900 kernels in three layers took the host 30 µs
    // each.
    ("experts", 11, 6.0, 34.5),
];

#[test]
fn steps_of_the_trainer_are_as_far_off_as_stated() {
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in STEPS.lines().skip(1) {
        let [id, way, seconds, again] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let measured = least(&format!("{seconds} {again}"));
        let run = runs().iter().find(|run| run.id == id).expect("a launch");
        let plan = run.resolution.plan.as_ref().expect("a plan");
        let step = time(plan).step.get();
        println!("{id} {way} {measured:.4} {step:.4} {:+.1} %", 100.0 * (step / measured - 1.0));
        errors.entry(way).or_default().push(100.0 * (step / measured - 1.0).abs());
    }
    for (way, count, median, most) in BARS {
        let mut errors = errors.remove(way).expect("runs of this way");
        errors.sort_by(f64::total_cmp);
        let (middle, last) = (errors[errors.len() / 2], errors[errors.len() - 1]);
        println!("{way}: {} runs, median {middle:.1} %, largest {last:.1} %", errors.len());
        assert_eq!(errors.len(), count, "{way}");
        assert!(middle <= median && last <= most, "{way}: median {middle:.1} %, largest {last:.1} %");
    }
}

/// The least of measurements, in seconds.
fn least(measured: &str) -> f64 {
    let all = measured.split_ascii_whitespace().map(|seconds| seconds.parse::<f64>().expect("seconds"));
    all.fold(f64::INFINITY, f64::min)
}
