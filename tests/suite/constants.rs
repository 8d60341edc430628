//! Every constant of a set has published runs that determine it, or its own measurement, or is labelled as assumed in
//! the list and in the plans to which it applies.

use std::collections::BTreeMap;

use pages::evidence::Row;
use shardscope::bash::Environment;
use shardscope::estimate::compute::{
    CALIBRATIONS, Calibration, ISSUES, Issue, PROCESSORS, Share, Standing, assumed,
};
use shardscope::estimate::constants::of_generation;
use shardscope::estimate::memory;
use shardscope::estimate::time::{FAMILIES, Family, Unknown, time, unknowns};
use shardscope::launch::{Request, read};
use shardscope::plan::{Generation, Plan};
use shardscope::source::Source;

/// The number of fitted rows that are sensitive to each constant: `cargo run --example fit -- --sensitivity`.
const SENSITIVITY: &str = include_str!("../data/measured/sensitivity.tsv");

/// Rows sensitive to a constant, by set, software or processor and the constant's name.
fn felt() -> BTreeMap<(&'static str, &'static str), u64> {
    let line = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        ((cells[0], cells[1]), cells[2].parse().expect("a count"))
    };
    SENSITIVITY.lines().skip(1).map(line).collect()
}

fn shares() -> impl Iterator<Item = Share> {
    Share::ALL.into_iter().chain(Share::FIXED)
}

/// Generations with the same silicon.
fn silicon(generation: Generation) -> Generation {
    match generation {
        Generation::A100Of40 => Generation::A100,
        Generation::H100Hbm2e => Generation::H100,
        Generation::GB200 | Generation::GB300 => Generation::B200,
        other => other,
    }
}

/// Rows that determine a constant of `set`: those of its silicon whose sets have the same value for it.
fn rows_of(set: &Calibration, share: Share, felt: &BTreeMap<(&str, &str), u64>) -> u64 {
    let alike = |other: &&Calibration| {
        silicon(other.generation) == silicon(set.generation) && share.value(other) == share.value(set)
    };
    let of = |other: &Calibration| felt.get(&(other.generation.name(), share.name())).copied();
    CALIBRATIONS.iter().filter(alike).map(|other| of(other).expect("a line of the table")).sum()
}

#[test]
fn constants_without_rows_are_called_assumed() {
    let felt = felt();
    for set in CALIBRATIONS {
        let constants = of_generation(&set);
        for share in shares().filter(|share| share.value(&set) > 0.0) {
            let name = format!("{} of {}", share.name(), set.generation.name());
            let rows = rows_of(&set, share, &felt);
            let constant = constants.iter().find(|one| one.name == share.name()).expect("a constant");
            if rows == 0 && !share.is_measured_alone(set.generation) {
                assert!(constant.assumed, "{name}: no row tells it, and nothing says so");
            }
            if Share::ALL.contains(&share) {
                assert!(rows == 0 || !constant.assumed, "{name}: {rows} rows tell what is called assumed");
            }
            assert_eq!(constant.assumed, share.is_assumed(set.generation), "{name}");
        }
        // Nothing is assumed about features that a part lacks: fp8 products on an MI250X.
        for share in shares().filter(|share| share.value(&set) == 0.0) {
            let constant = constants.iter().find(|one| one.name == share.name()).expect("a constant");
            assert!(!constant.assumed, "{} of {}", share.name(), set.generation.name());
        }
        // Every listed constant can be varied by name.
        let moved: Vec<&str> = shares().map(Share::name).collect();
        assert!(constants.iter().all(|one| moved.contains(&one.name)), "{}", set.generation.name());
    }
}

/// Software and processors whose host time no row determines are labelled in the guide's list.
#[test]
fn host_times_without_rows_are_called_assumed() {
    let felt = felt();
    for issue in ISSUES.iter().filter(|issue| issue.kernel.get() > 0.0) {
        let rows = |constant| felt.get(&(issue.name, constant)).copied().expect("a line of the table");
        let none =
            ["forward", "backward", "kernel", "message"].into_iter().all(|constant| rows(constant) == 0);
        let said = issue.source.contains("assumed") || issue.source.contains("measured");
        assert!(!none || said, "{}: {}", issue.name, issue.source);
    }
    for of in PROCESSORS {
        let name = of.source.split([',', ';', ':']).next().expect("a name");
        let rows = felt.get(&(name, "share")).copied().expect("a line of the table");
        let said = ["assumed", "functional tests", "what the shares are of"];
        assert!(rows > 0 || said.iter().any(|word| of.source.contains(word)), "{}", of.source);
    }
}

/// A plan lists each assumption that applies to it, and no other.
#[test]
fn plans_say_what_is_assumed() {
    let mut said = 0;
    for row in Row::all() {
        let plan = row.try_plan().expect("a plan");
        let accelerator = &plan.cluster().accelerator;
        let measured = Standing::from_accelerator(accelerator) == Standing::Measured;
        let named = unknowns(&plan, &time(&plan));
        for share in Share::ALL {
            let counts =
                measured && assumed(accelerator.generation).contains(&share) && share.counts_in(&plan);
            assert_eq!(
                named.contains(&Unknown::Assumed(share)),
                counts,
                "{}: {}",
                row.text("id"),
                share.name()
            );
            said += usize::from(counts);
        }
    }
    assert!(said > 0);
}

/// A constant that does not apply to a plan does not change its step: the list of applicable constants is complete.
#[test]
fn constants_that_do_not_count_move_no_step() {
    use shardscope::estimate::time::step_seconds_with;
    for row in Row::all().iter().step_by(5) {
        let plan = row.try_plan().expect("a plan");
        let set = shardscope::estimate::compute::calibration(&plan.cluster().accelerator);
        let before = step_seconds_with(&plan, set).get();
        for share in shares().filter(|share| !share.counts_in(&plan)) {
            let mut tried = set;
            share.set(&mut tried, share.value(&set) * 0.9);
            let after = step_seconds_with(&plan, tried).get();
            assert!((after / before - 1.0).abs() < 1e-12, "{}: {}", row.text("id"), share.name());
        }
    }
}

/// Hooks on the tensors saved by a recomputed layer only exist for non-reentrant checkpoints.
#[test]
fn reentrant_checkpoints_have_no_hooks() {
    let text = "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: a\ntemplate: qwen\n\
        cutoff_len: 512\nper_device_train_batch_size: 1\nbf16: true\n";
    let source = Source::from_files([("train.yaml", text)]);
    let plan = |reentrant: &str| {
        let overrides = [("world_size", "1"), ("reentrant_checkpoints", reentrant)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request =
            Request { source: &source, environment: &Environment::default(), overrides: &overrides };
        read(&request).plan.expect("a plan")
    };
    let [hooked, reentrant] = ["false", "true"].map(plan);
    let issue = |plan: &Plan| Issue::new(plan.recipe(), &plan.cluster().accelerator);
    assert!((issue(&hooked).saved.get() - 20e-6).abs() < 1e-12);
    assert_eq!(issue(&reentrant).saved.get(), 0.0);
    // A layer this small is only limited by the host.
    let apart = time(&hooked).step.get() - time(&reentrant).step.get();
    assert!(apart > 0.0, "{apart}");
    assert_eq!(memory(&hooked).worst.peak_allocated, memory(&reentrant).worst.peak_allocated);
}

/// Messages of tensor ranks overlap with backward if there are several ranks: contention does not apply to a single
/// one.
#[test]
fn contention_counts_where_something_overlaps() {
    let flags = "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --max-position-embeddings 512 \
        --micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16";
    let counts = |more: &str| {
        let plan = shardscope::launch::plan_from_flags(&format!("{flags} {more}"), 8, 8, "H100-SXM")
            .expect("a plan");
        assert!(plan.recipe().overlap.tensor_backward, "{more}");
        Share::Contention.counts_in(&plan)
    };
    assert!(!counts(""));
    assert!(counts("--tensor-model-parallel-size 2"));
    assert!(counts("--use-distributed-optimizer --overlap-grad-reduce"));
}

/// A constant measured outside of any run was measured on the parts named by its source.
#[test]
fn sources_name_the_parts_that_were_measured_alone() {
    let alone = [Share::Exchange, Share::TailRows, Share::AttentionFourth, Share::Unaligned];
    for set in CALIBRATIONS {
        let constants = of_generation(&set);
        let part = match silicon(set.generation) {
            Generation::A100 => "A100",
            Generation::H100 => "H100",
            Generation::B200 => "B200",
            _ => "on no part",
        };
        for share in alone {
            let constant = constants.iter().find(|one| one.name == share.name()).expect("a constant");
            let named = constant.source.contains(part);
            assert_eq!(
                share.is_measured_alone(set.generation),
                named,
                "{}: {}",
                set.generation.name(),
                constant.source
            );
        }
    }
}

/// A link's constants apply if there is another rank to reach over it, its bandwidth's if that was not measured, and
/// the slowdown of concurrent messages and arithmetic if they overlap.
#[test]
fn links_count_where_messages_go() {
    const BANDWIDTHS: [Share; 2] = [Share::FastLink, Share::Network];
    let of = |more: &str| {
        let link = "accelerator=H100-SXM&num_layers=4&bf16&micro_batch_size=1&global_batch_size=64&seq_length=2048&\
            async_tensor_model_parallel_allreduce=false";
        super::worked_out_times::plan("Llama-3-8B", &format!("{link}&{more}"))
    };
    let links = [
        Share::FastLink,
        Share::FastStart,
        Share::Contention,
        Share::Exchange,
        Share::Network,
        Share::NetworkStart,
        Share::NetworkHop,
        Share::Straggling,
    ];
    let counting = |plan: &Plan| links.into_iter().filter(|share| share.counts_in(plan)).collect::<Vec<_>>();
    let overlaps = "use_distributed_optimizer&overlap_grad_reduce&overlap_param_gather";
    assert_eq!(counting(&of(&format!("num_nodes=1&gpus_per_node=1&{overlaps}"))), []);
    let node = of("num_nodes=1&gpus_per_node=8");
    assert_eq!(counting(&node), [Share::FastLink, Share::FastStart]);
    let overlapped = of(&format!("num_nodes=1&gpus_per_node=8&{overlaps}"));
    assert_eq!(counting(&overlapped), links[..3]);
    let nodes = of(&format!("num_nodes=2&gpus_per_node=8&{overlaps}"));
    assert_eq!(counting(&nodes), [&links[..3], &links[4..]].concat());
    let measured = of(&format!(
        "num_nodes=2&gpus_per_node=8&{overlaps}&measured_fast_bus_gbps=200&measured_network_bus_gbps=20"
    ));
    let mut left = counting(&nodes);
    left.retain(|share| !BANDWIDTHS.contains(share));
    assert_eq!(counting(&measured), left);
    // Megatron core's fused attention is that of cuDNN.
    for other in [Share::AttentionPytorch, Share::AttentionTriton, Share::AttentionFourth] {
        assert!(!other.counts_in(&node), "{}", other.name());
    }
}

/// The ends of an interval come from published runs, except on parts without any: those are assumed.
#[test]
fn intervals_of_parts_never_measured_are_assumed() {
    for (name, read) in [
        ("H100-SXM", true),
        ("A100-SXM-80GB", true),
        ("B200", true),
        ("MI300X", true),
        ("L40S", false),
        ("L4", false),
    ] {
        let link = format!(
            "accelerator={name}&num_nodes=1&gpus_per_node=8&num_layers=2&bf16&seq_length=512&micro_batch_size=1&global_batch_size=8"
        );
        let plan = super::worked_out_times::plan("Llama-3-8B", &link);
        assert_eq!(Family::from_plan(&plan).is_earned(), read, "{name}");
    }
    assert!(FAMILIES.iter().all(Family::is_earned));
}

/// In training, CDNA 4 reaches the same fraction of its peaks as CDNA 3, times the ratio of what single bf16 products
/// reach on MI355X and on MI325X.
#[test]
fn products_on_cdna_4_follow_single_ones() {
    let set =
        |name: &str| CALIBRATIONS.iter().find(|set| set.generation.name() == name).expect("a set").matmul;
    let (third, fourth) = (set("MI300X"), set("MI355X"));
    let apart = (1565.0 / 2500.0) / (784.9 / 1307.0);
    for (third, fourth) in [(third.half, fourth.half), (third.fp8, fourth.fp8), (third.fp8, fourth.fp4)] {
        assert!((third * apart - fourth).abs() < 0.0006, "{third} {fourth}");
    }
}
