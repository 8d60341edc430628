//! Single kernels on one H200, measured by this project (`tests/record/kernels_on_gpu.py`), beside what the model of a product and of
//! a streaming kernel says. No constant was found on them yet: the set of Hopper was found on steps of whole runs, where the rate of
//! products, the cost of a wave and the memory's bandwidth can hardly be told apart. These tell them apart, and the bars state by how
//! much each is off; one that closes fails.

use std::collections::BTreeMap;

use shardscope::estimate::compute::{Device, Product};
use shardscope::launch::resolve;

/// What was run, its sizes, seconds.
const KERNELS: &str = include_str!("../data/measured/kernels.tsv");

/// FLOPs from which on a product keeps all multiprocessors busy for a third of a millisecond or more.
const LARGE: f64 = 3e11;

/// What is compared, how many rows, and between which medians of the error in per cent.
const BARS: [(&str, usize, f64, f64); 5] = [
    ("copies and additions of 64 MiB and more", 12, 70.0, 85.0),
    ("fp8 products without fast accumulation", 20, -4.0, 4.0),
    ("grouped products", 171, 20.0, 40.0),
    ("large products", 123, -5.0, 2.0),
    ("small products", 327, 20.0, 35.0),
];

fn device(more: &[(&str, &str)]) -> Device {
    let settings = [
        ("num_layers", "2"),
        ("hidden_size", "1024"),
        ("num_attention_heads", "8"),
        ("seq_length", "1024"),
        ("micro_batch_size", "1"),
        ("vocab_size", "1024"),
        ("bf16", "true"),
        ("world_size", "1"),
        ("accelerator", "H200-SXM"),
    ];
    let all: Vec<(String, String)> =
        settings.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &all);
    let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    Device::new(plan.cluster(), plan.recipe())
}

#[test]
fn single_kernels_are_as_far_off_as_stated() {
    let (half, low) = (device(&[]), device(&[("fp8", "hybrid")]));
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in KERNELS.lines().skip(1) {
        let [kind, op, sizes, seconds] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let sizes: BTreeMap<&str, f64> = sizes
            .split_ascii_whitespace()
            .filter_map(|size| {
                size.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)))
            })
            .collect();
        let size = |name: &str| sizes.get(name).map_or(0, |value| *value as u64);
        let product = |shape: [u64; 3], batch: u64, low: bool| {
            let [m, n, k] = shape;
            Product { batch, m, n, k, low, aligned: true, grouped: batch > 1, result_width: 2.0 }
        };
        let (name, said) = match kind {
            "gemm" => {
                let (m, n, k) = (size("m"), size("n"), size("k"));
                let shape = match op {
                    "input" => [m, k, n],
                    "weight" => [n, k, m],
                    _ => [m, n, k],
                };
                let product = product(shape, 1, false);
                let name = if product.flops().get() < LARGE { "small products" } else { "large products" };
                (name, product.time(&half).time)
            }
            "fp8" if op == "tensorwise" => {
                let product = product([size("m"), size("n"), size("k")], 1, true);
                ("fp8 products without fast accumulation", product.time(&low).time)
            }
            "grouped" if matches!(op, "forward" | "input" | "weight") => {
                let (each, n, k) = (size("each"), size("n"), size("k"));
                let shape = match op {
                    "input" => [each, k, n],
                    "weight" => [n, k, each],
                    _ => [each, n, k],
                };
                ("grouped products", product(shape, size("experts"), false).time(&half).time)
            }
            "stream" if op != "cast bf16 to fp32" && sizes["bytes"] >= 128.0 * 1024.0 * 1024.0 => {
                ("copies and additions of 64 MiB and more", half.kernel(sizes["bytes"], 1))
            }
            _ => continue,
        };
        let measured: f64 = seconds.parse().expect("seconds");
        errors.entry(name).or_default().push(100.0 * (said.get() / measured - 1.0));
    }
    assert_eq!(errors.len(), BARS.len());
    for ((name, errors), (expected, count, least, most)) in errors.iter_mut().zip(BARS) {
        assert_eq!(*name, expected);
        errors.sort_by(f64::total_cmp);
        let median = errors[errors.len() / 2];
        println!(
            "{name}: {} rows, median {median:+.1} %, {:+.1} to {:+.1}",
            errors.len(),
            errors[errors.len() / 10],
            errors[errors.len() * 9 / 10]
        );
        assert_eq!(errors.len(), count, "{name}");
        assert!((least..=most).contains(&median), "{name}: median {median:+.1} %");
    }
}
