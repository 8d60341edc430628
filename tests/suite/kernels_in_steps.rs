//! Single kernels of steps of transformers' Trainer on three H200, as PyTorch's profiler timed them
//! (`tests/record/profile_on_gpu.py`), compared with the model of a kernel. What depends on the clock that power
//! leaves, on how tokens fall on experts, and on how operands lie in memory is read from these rows.

use std::collections::BTreeMap;

use shardscope::estimate::compute::Product;
use shardscope::operators::MatmulKind;

use crate::kernels::{attention_product, device, hold};

/// Kind, operation, sizes, median seconds of a call, steps in which it was seen.
const KERNELS: &str = include_str!("../data/measured/kernels_in_steps.tsv");

/// FLOPs above which a product keeps all multiprocessors busy for at least a third of a millisecond.
const LARGE: f64 = 3e11;

/// What is compared, the number of rows, and the range of the median error in per cent.
const BARS: [(&str, usize, f64, f64); 8] = [
    ("added by index", 9, 10.0, 20.0),
    ("attention", 44, -3.0, 3.0),
    ("attention with a mask", 2, -5.0, 5.0),
    ("casts", 61, -4.0, 2.0),
    ("grouped products", 46, -5.0, 1.0),
    ("large products", 82, -1.0, 3.0),
    ("small products", 137, 0.0, 5.0),
    ("strided or spread", 168, -2.0, 2.0),
];

#[test]
fn kernels_within_steps_take_what_the_model_says() {
    let device = device(&[("software", "hf_transformers")]);
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in KERNELS.lines().skip(1) {
        let [kind, op, sizes, seconds, _] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let sizes: BTreeMap<&str, f64> = sizes
            .split_ascii_whitespace()
            .filter_map(|size| {
                size.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)))
            })
            .collect();
        let size = |name: &str| sizes.get(name).map_or(0, |value| *value as u64);
        let product = |batch: u64, [m, n, k]: [u64; 3], grouped: bool, uneven: bool| {
            let aligned = n.is_multiple_of(8) && k.is_multiple_of(8);
            Product { batch, m, n, k, low: false, aligned, grouped, uneven, result_width: 2.0 }
        };
        let (m, n, k) = (size("m"), size("n"), size("k"));
        let (name, said) = match kind {
            "product" => {
                let product = product(1, [m, n, k], false, false);
                if !product.aligned {
                    continue;
                }
                let name = if product.flops().get() < LARGE { "small products" } else { "large products" };
                (name, product.time(&device).time)
            }
            "grouped" => {
                let experts = size("experts");
                let shape = if op == "weight" { [m, n, k / experts] } else { [m / experts, n, k] };
                ("grouped products", product(experts, shape, true, op != "weight").time(&device).time)
            }
            "attention" => {
                let masked = op.ends_with("masked");
                let products = [MatmulKind::Scores, MatmulKind::Values].map(|kind| {
                    let mut of = attention_product(kind, &sizes);
                    of.masked = masked;
                    if op.starts_with("forward") {
                        device.fused_forward(&of)
                    } else {
                        device.fused_backward(&of)
                    }
                });
                (if masked { "attention with a mask" } else { "attention" }, products.into_iter().sum())
            }
            "addressed" => {
                let name = match op {
                    op if op.contains("into few rows") => continue,
                    op if op.contains("by index") => "added by index",
                    op if op.contains("cast") => "casts",
                    _ => "strided or spread",
                };
                (name, device.addressed(0.0, sizes["elements"]))
            }
            _ => continue,
        };
        let measured: f64 = seconds.parse().expect("seconds");
        errors.entry(name).or_default().push(100.0 * (said.get() / measured - 1.0));
    }
    hold(&mut errors, &BARS);
}
