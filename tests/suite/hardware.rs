//! The catalog's machines compared with figures from their sources, collected independently:
//! `data/published/hardware.tsv` (as given in data sheets and in the tables of stas00/ml-engineering) and `nodes.tsv`.

use shardscope::catalog::{accelerator, accelerator_names, cluster, platform, platforms};
use shardscope::estimate::compute::PROCESSORS;
use shardscope::plan::{Accelerator, Processor};

use super::drafts::settled;

const HARDWARE: &str = include_str!("../data/published/hardware.tsv");
const NODES: &str = include_str!("../data/published/nodes.tsv");

fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split('\t').collect())
}

#[track_caller]
fn same(name: &str, what: &str, held: Option<f64>, given: &str) {
    if given.is_empty() {
        return;
    }
    let given: f64 = given.parse().expect("a figure");
    let held = held.unwrap_or_else(|| panic!("{name} has no {what}"));
    assert!((held / given - 1.0).abs() < 1e-9, "{name}: {what} {held}, its source says {given}");
}

#[test]
fn every_accelerator_has_the_figures_of_its_data_sheet() {
    let mut seen = 0;
    for line in lines(HARDWARE) {
        let [name, memory, bandwidth, fp32, half, fp8, fp4, link, domain] = line[..] else {
            panic!("{line:?}")
        };
        let Accelerator { memory: held, memory_bandwidth, peaks, fast_link, source, .. } =
            accelerator(name).unwrap_or_else(|| panic!("no {name}"));
        same(name, "memory", Some(held.get() as f64 / 1_048_576.0), memory);
        same(name, "memory bandwidth", Some(memory_bandwidth.get() / 1e12), bandwidth);
        same(name, "fp32", Some(peaks.fp32.get() / 1e12), fp32);
        same(name, "bf16 or fp16", Some(peaks.half.get() / 1e12), half);
        same(name, "fp8", peaks.fp8.map(|peak| peak.get() / 1e12), fp8);
        same(name, "nvfp4", peaks.fp4.map(|peak| peak.get() / 1e12), fp4);
        assert_eq!(peaks.fp4.is_some(), !fp4.is_empty(), "{name}: nvfp4");
        same(name, "fast link", Some(fast_link.bandwidth.get() / 1e9), link);
        if matches!(domain, "72") {
            let held = cluster(accelerator(name).expect("it"), 18, 4).fast_domain;
            same(name, "fast domain", Some(held as f64), domain);
        }
        assert!(!source.is_empty(), "{name} has no source");
        seen += 1;
    }
    assert_eq!(seen, accelerator_names().count(), "none is missing, none is held without its source");
}

#[test]
fn every_platform_has_the_network_of_its_source() {
    for line in lines(NODES) {
        let [name, accelerator, gpus, adapters, gbit] = line[..] else { panic!("{line:?}") };
        let held = platform(name).unwrap_or_else(|| panic!("no {name}"));
        let number = |text: &str| text.parse::<f64>().expect("a number");
        assert_eq!(held.accelerator, accelerator, "{name}");
        assert_eq!(held.gpus_per_node.to_string(), gpus, "{name}");
        let each = number(adapters) * number(gbit) / 8.0 / number(gpus);
        assert!((held.network.bandwidth.get() / 1e9 / each - 1.0).abs() < 1e-9, "{name}: {each}");
    }
    for asked in ["DGX A100", "DGX H100", "NDm A100 v4", "Jean Zay", "Selene", "GB200 NVL72"] {
        assert!(platforms().any(|known| known.name.contains(asked)), "no preset for {asked}");
    }
    assert!(platforms().all(|known| !known.source.is_empty()));
}

/// Jobs on more than one rack use 64 of the 72 accelerators of each.
#[test]
fn jobs_over_racks_take_segments_of_a_power_of_two() {
    let domain = |nodes, per_node| {
        let one = accelerator("GB200").expect("it");
        cluster(one, nodes, per_node).fast_domain
    };
    assert_eq!((domain(16, 4), domain(18, 4), domain(32, 4), domain(512, 4)), (72, 72, 64, 64));
}

/// An accelerator that is not in the catalog is the closest one with its figures replaced.
#[test]
fn a_machine_of_the_readers_own_takes_the_place_of_the_catalogs() {
    use shardscope::estimate::{memory, time::time};
    let usual = settled(&[]);
    assert_eq!(settled(&[("gpu_memory_gib", "")]), usual);
    let catalogs = [
        ("gpu_memory_tbps", "3.35"),
        ("gpu_peak_tflops", "989"),
        ("gpu_peak_fp8_tflops", "1979"),
        ("fast_link_gbps", "450"),
        ("fast_link_domain", "8"),
        ("network_gbps", "50"),
    ];
    assert_eq!(settled(&catalogs), usual, "the catalog's own figures change nothing");
    let small = memory(&settled(&[("gpu_memory_gib", "8")]));
    assert!(memory(&usual).fits && !small.fits && small.capacity.in_gib() == 8.0);
    let step = |set: &[(&str, &str)]| time(&settled(set)).step.get();
    for (name, slower) in [
        ("gpu_peak_tflops", "400"),
        ("gpu_memory_tbps", "1"),
        ("fast_link_gbps", "100"),
        ("fast_link_domain", "4"),
        ("network_gbps", "5"),
    ] {
        assert!(step(&[(name, slower)]) > 1.02 * step(&[]), "{name} {slower}");
    }
    let fp8 = |peak: &str| step(&[("fp8", "hybrid"), ("gpu_peak_fp8_tflops", peak)]);
    assert!(fp8("1000") > 1.02 * fp8("2000"));
}

/// Grace is soldered next to the accelerators that its own link connects to it, and to no others: an HGX B300 has
/// Xeons, although it has the same silicon as a GB300.
#[test]
fn grace_stands_where_its_own_link_leads() {
    for name in accelerator_names() {
        let known = accelerator(name).expect("it");
        assert_eq!(known.host_link.name == "NVLink-C2C", known.processor == Processor::Grace, "{name}");
        let speeds = PROCESSORS.iter().filter(|of| of.processor == known.processor);
        assert_eq!(speeds.count(), 1, "{name}: one speed for its processors");
    }
    for of in PROCESSORS {
        let beside = accelerator_names().filter_map(accelerator).any(|known| known.processor == of.processor);
        assert!(beside, "{:?} stands beside nothing", of.processor);
    }
}
