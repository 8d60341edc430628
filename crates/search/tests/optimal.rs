//! Compares the search with an estimate of every layout in the same space.

mod pairs;

use pairs::{of_flags, plan, plan_set};
use shardscope_estimate::memory_totals;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{DpSharding, Overlap, Recompute, Variant};
use shardscope_search::{Choices, Dimension, Space, Values, Walk, exhaust};

fn walk(space: Space) -> Walk {
    let mut walk = Walk::over(space, 3);
    while walk.step(64) {}
    walk
}

/// Dimensions and the range of sizes in which they are varied.
type Ranges = &'static [(Dimension, u64, u64)];

/// Pairs, the dimensions opened, and ranges for some of them so that a test can try everything.
const PAIRS: [(&str, &[Dimension], Ranges); 12] = {
    use Dimension as D;
    [
        (
            "llama-3 8b, 8 H100",
            &[D::Recompute, D::Sharding, D::MicroBatch, D::Overlap],
            &[(D::Tensor, 1, 2), (D::MicroBatch, 1, 2)],
        ),
        (
            "llama-3 8b, 64 H100",
            &[D::Split, D::VirtualPipeline, D::Sharding],
            &[(D::Pipeline, 1, 8), (D::MicroBatch, 1, 2)],
        ),
        (
            "llama-3 70b, 128 H100",
            &[D::Split, D::VirtualPipeline, D::SequenceParallel, D::RankOrder],
            &[(D::Tensor, 4, 8), (D::Pipeline, 2, 8)],
        ),
        ("llama-3 405b, 16384 H100", &[D::Split, D::VirtualPipeline, D::Recompute], &[(D::Pipeline, 16, 16)]),
        (
            "gpt-3 175b, 512 A100",
            &[D::VirtualPipeline, D::Recompute],
            &[(D::Pipeline, 8, 8), (D::MicroBatch, 1, 1)],
        ),
        (
            "gpt-3 175b, 1024 A100",
            &[D::VirtualPipeline, D::Sharding],
            &[(D::Pipeline, 4, 16), (D::MicroBatch, 1, 2)],
        ),
        (
            "mixtral 8x7b, 64 H100",
            &[D::Expert, D::ExpertTensor, D::Sharding],
            &[(D::Tensor, 1, 4), (D::Pipeline, 1, 2), (D::MicroBatch, 1, 2)],
        ),
        ("qwen3 235b, 256 H100", &[D::Split, D::VirtualPipeline], &[(D::Pipeline, 4, 8)]),
        ("deepseek-v3, 2048 H800", &[D::Recompute], &[]),
        ("bloom 176b, 384 A100", &[D::Split, D::VirtualPipeline], &[(D::Pipeline, 8, 12)]),
        (
            "gpt-3 530b, 2240 A100",
            &[D::VirtualPipeline, D::SequenceParallel, D::Sharding],
            &[(D::Pipeline, 35, 35)],
        ),
        ("gpt-3 1t, 512 A100", &[D::VirtualPipeline, D::Sharding], &[(D::Pipeline, 32, 64)]),
    ]
};

/// Branch and bound skips nothing that is better: in each of twelve spaces the fastest layout is the one found by
/// trying every layout, to the last bit, and at least as many are decided.
#[test]
fn the_fastest_is_the_one_that_trying_everything_finds() {
    for (name, opened, ranges) in PAIRS {
        let mut choices = Choices::stated();
        for dimension in opened {
            choices = choices.with(*dimension, Values::Open);
        }
        for (dimension, least, most) in ranges {
            choices = choices.with(*dimension, Values::Between(*least, *most));
        }
        let space = Space::with(&plan(name), choices);
        let found = walk(space.clone());
        let all = exhaust(&space);
        let step = |one: Option<&shardscope_search::Outcome>| one.map(|one| one.step.get());
        println!(
            "{name}: {:?} s of {} layouts ({} worked out)",
            step(found.best().first()),
            all.tally.decided(),
            found.tally().estimated
        );
        assert!(all.tally.estimated > 0, "{name}: {:?}", all.tally);
        assert_eq!(step(found.best().first()), step(all.best.as_ref()), "{name}");
        // Layouts that take part of the headroom are listed only as long as nothing faster leaves it free.
        if found.best().is_empty() {
            assert_eq!(step(found.tight().first()), step(all.tight.as_ref()), "{name}");
        }
        let counted = all.tally.decided() - all.tally.refused();
        let searched = found.tally().decided() - found.tally().refused();
        assert!(searched >= counted, "{name}: {:?} for {:?}", found.tally(), all.tally);
    }
}

/// On one GPU recomputation can need more memory than none, because it splits the allocator's blocks differently:
/// here full recomputation does not fit, and no recomputation does.
#[test]
fn what_recomputes_nothing_is_found_where_what_recomputes_all_does_not_fit() {
    let recomputed =
        [("recompute_granularity", "full"), ("recompute_method", "uniform"), ("recompute_num_layers", "1")];
    let set = [[("software", "torchtune"), ("gpu_memory_gib", "13")].as_slice(), &recomputed].concat();
    let plan = plan_set("llama-3 1b, 1 H100", &set).expect("a plan");
    let space = Space::with(&plan, Choices::stated().with(Dimension::Recompute, Values::Open));
    let (found, all) = (walk(space.clone()), exhaust(&space));
    let recompute = |one: Option<&shardscope_search::Outcome>| one.map(|one| one.variant.recompute.clone());
    assert_eq!((all.tally.decided(), all.tally.too_large), (2, 1));
    assert_eq!(recompute(all.tight.as_ref()), Some(Recompute::None));
    assert_eq!(recompute(found.tight().first()), Some(Recompute::None));
}

/// Layouts that the space excludes: reductions that overlap less than they could take no less time, and no less
/// memory.
#[test]
fn overlapped_reductions_are_never_worse() {
    let mut compared = 0;
    for (name, ..) in PAIRS {
        let plan = plan(name);
        let own = Variant::from_plan(&plan);
        for sharding in [DpSharding::OptimizerStates, DpSharding::Replicated] {
            for micro_batch_size in [1, 2, 4] {
                let with = |grad_reduce: bool, param_gather: bool| {
                    let overlap = Overlap { grad_reduce, param_gather, ..own.overlap };
                    Variant { sharding, micro_batch_size, overlap, ..own.clone() }.apply(&plan)
                };
                let most = with(true, sharding == DpSharding::OptimizerStates);
                let less = [with(false, false), with(true, false)];
                for less in less.into_iter().flatten() {
                    let most = most.as_ref().expect("what runs with less overlap runs with more");
                    assert!(exact_step_seconds(most) <= exact_step_seconds(&less), "{name}");
                    assert_eq!(memory_totals(most), memory_totals(&less), "{name}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

/// Several workers together find what one finds, and decide as many layouts.
#[test]
fn parts_of_a_search_are_the_whole() {
    let name = "llama-3 8b, 8 H100";
    let choices = Choices::default().with(Dimension::MicroBatch, Values::Between(1, 2));
    let search = || Walk::with(&plan(name), choices.clone());
    let ended = |mut walk: Walk| {
        while walk.step(64) {}
        walk
    };
    let whole = ended(search());
    for parts in [2, 3] {
        let mut joined = ended(search().part(0, parts));
        for index in 1..parts {
            joined.join(&ended(search().part(index, parts)));
        }
        let listed = |walk: &Walk| walk.best().iter().map(|one| one.variant.clone()).collect::<Vec<_>>();
        assert!(listed(&whole).len() > 5);
        assert_eq!(listed(&joined), listed(&whole), "{parts}");
        assert_eq!(joined.tally().decided(), whole.tally().decided(), "{parts}");
        assert_eq!(joined.tally().refused(), whole.tally().refused(), "{parts}");
    }
}

/// Models small enough to try every layout of their full spaces, with all dimensions of a search open: experts and
/// products in 8 and 4 bits, states on the host, uneven stages under every zero-bubble schedule, and devices that
/// they barely fit on.
const SMALL: [(&str, u64, &str, &str); 5] = [
    (
        "states on the host",
        2,
        "A100-SXM-40GB",
        "--num-layers 4 --hidden-size 8192 --num-attention-heads 64 --global-batch-size 2 --seq-length 2048",
    ),
    (
        "experts",
        4,
        "H100-SXM",
        "--num-layers 4 --hidden-size 4096 --num-attention-heads 32 --num-experts 4 --moe-router-topk 2 \
         --moe-grouped-gemm --moe-token-dispatcher-type alltoall --global-batch-size 4 --seq-length 2048",
    ),
    (
        "zero bubbles",
        4,
        "A100-SXM-40GB",
        "--num-layers 6 --hidden-size 5120 --num-attention-heads 40 --global-batch-size 8 --seq-length 4096 \
         --pipeline-model-parallel-size 2 --enable-zero-bubble",
    ),
    (
        "uneven",
        8,
        "A100-SXM-40GB",
        "--num-layers 9 --hidden-size 6144 --num-attention-heads 48 --global-batch-size 8 --seq-length 2048",
    ),
    (
        "hardly fits",
        4,
        "A100-SXM-40GB",
        "--num-layers 8 --hidden-size 6144 --num-attention-heads 48 --global-batch-size 16 --seq-length 2048",
    ),
];

#[test]
fn over_whole_spaces_of_small_models() {
    for (name, gpus, accelerator, flags) in SMALL {
        let more = "--max-position-embeddings 8192 --vocab-size 64000 --micro-batch-size 1 --swiglu --bf16 \
                    --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope \
                    --normalization RMSNorm --use-distributed-optimizer --transformer-impl transformer_engine";
        let plan = of_flags(gpus, accelerator, &format!("{flags} {more}"));
        let choices = Choices::default().with(Dimension::Precision, Values::Open);
        let space = Space::with(&plan, choices.with(Dimension::Offload, Values::Open));
        let (found, all) = (walk(space.clone()), exhaust(&space));
        let step = |one: Option<&shardscope_search::Outcome>| one.map(|one| one.step.get());
        println!(
            "{name}: {:?} s, tight {:?} s, of {} layouts, {} of them fit ({} worked out)",
            step(found.best().first()),
            step(found.tight().first()),
            all.tally.decided(),
            all.tally.estimated,
            found.tally().estimated
        );
        assert!(all.tally.estimated > 100, "{name}: {:?}", all.tally);
        let both = || format!("{name}: {:?} for {:?}", found.best().first(), all.best);
        assert_eq!(step(found.best().first()), step(all.best.as_ref()), "{}", both());
        if found.best().is_empty() {
            assert_eq!(step(found.tight().first()), step(all.tight.as_ref()), "{name}");
        }
        // What only fits with states on the host is found there, and what fits otherwise is never slower for it.
        let best = found.best().first().expect("one that fits");
        assert_eq!(best.variant.optimizer_on_host, name == "states on the host", "{}", both());
    }
}

/// The same with groups of replicas and offloaded modules opened: sharding within groups across a slow network, a
/// mixture of experts whose groups also divide its own replicas, and devices that barely hold what layers save.
const WITH_GROUPS_AND_HOSTS: [(&str, u64, &str, &[Dimension], &str); 5] = {
    use Dimension as D;
    [
        (
            "groups of replicas",
            32,
            "A100-SXM-80GB",
            &[D::Instances, D::Sharding, D::Tensor, D::MicroBatch, D::Overlap],
            "--num-layers 4 --hidden-size 4096 --num-attention-heads 32 --global-batch-size 64 --seq-length 1024 --swiglu",
        ),
        (
            "HSDP",
            32,
            "A100-SXM-80GB",
            &[D::Instances, D::Recompute, D::Tensor],
            "--num-layers 8 --hidden-size 4096 --num-attention-heads 32 --global-batch-size 512 --seq-length 256 --swiglu \
             --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params",
        ),
        (
            "groups of experts' replicas",
            16,
            "H100-SXM",
            &[D::Instances, D::Sharding, D::Expert, D::Pipeline],
            "--num-layers 4 --hidden-size 2048 --num-attention-heads 16 --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm \
             --moe-token-dispatcher-type alltoall --global-batch-size 32 --seq-length 1024 --swiglu",
        ),
        (
            "modules on the host",
            2,
            "A100-SXM-40GB",
            &[D::OffloadModules, D::Recompute, D::MicroBatch, D::Tensor, D::Pipeline, D::VirtualPipeline],
            "--num-layers 4 --hidden-size 4096 --num-attention-heads 32 --global-batch-size 8 --seq-length 8192 --swiglu",
        ),
        (
            "experts' modules on the host",
            2,
            "A100-SXM-40GB",
            &[D::OffloadModules, D::Recompute, D::Expert],
            "--num-layers 4 --hidden-size 2048 --num-attention-heads 16 --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm \
             --moe-token-dispatcher-type alltoall --global-batch-size 4 --seq-length 8192 --swiglu",
        ),
    ]
};

#[test]
fn over_groups_of_replicas_and_modules_on_the_host() {
    for (name, gpus, accelerator, opened, flags) in WITH_GROUPS_AND_HOSTS {
        let more = "--max-position-embeddings 8192 --vocab-size 64000 --micro-batch-size 1 --bf16 --disable-bias-linear \
                    --untie-embeddings-and-output-weights --position-embedding-type rope --normalization RMSNorm \
                    --transformer-impl transformer_engine";
        // Replicated and sharded from the start: groups are found from both.
        for sharded in ["", "--use-distributed-optimizer"] {
            let plan = of_flags(gpus, accelerator, &format!("{flags} {more} {sharded}"));
            let choices =
                opened.iter().fold(Choices::stated(), |choices, one| choices.with(*one, Values::Open));
            let space = Space::with(&plan, choices);
            let (found, all) = (walk(space.clone()), exhaust(&space));
            let step = |one: Option<&shardscope_search::Outcome>| one.map(|one| one.step.get());
            let both = || format!("{name} {sharded}: {:?} for {:?}", found.best().first(), all.best);
            println!("{} of {:?}, {} worked out", both(), all.tally, found.tally().estimated);
            assert!(all.tally.estimated > 20, "{name}: {:?}", all.tally);
            assert_eq!(step(found.best().first()), step(all.best.as_ref()), "{}", both());
            if found.best().is_empty() {
                assert_eq!(step(found.tight().first()), step(all.tight.as_ref()), "{name}");
            }
            // Neither is opened in vain: weights gathered within a node, and modules on the host, are the fastest
            // there.
            let best = found.best().first().expect("one that fits");
            assert_eq!(best.variant.instances > 1, name == "HSDP", "{}", both());
            assert_eq!(!best.variant.offloaded.is_empty(), name.ends_with("on the host"), "{}", both());
            let decided = |tally: &shardscope_search::Tally| tally.decided() - tally.refused();
            assert!(
                decided(found.tally()) >= decided(&all.tally),
                "{name}: {:?} for {:?}",
                found.tally(),
                all.tally
            );
        }
    }
}

/// torchtitan's groups (`data_parallel_replicate_degree`), between nodes of a slow network and within them: FSDP2
/// sums shards after every reduction, and holds them until backward ends. Over several micro-batches these sums make groups the
/// slower choice on this network, so that a step here has one or two.
#[test]
fn over_groups_of_torchtitan() {
    let set = [
        ("software", "torchtitan"),
        ("zero_stage", "3"),
        ("seq_length", "2048"),
        ("network_gbps", "3.125"),
        ("global_batch_size", "64"),
    ];
    let plan = plan_set("llama-3 8b, 64 H100", &set).expect("a plan");
    let choices = Choices::stated()
        .with(Dimension::Instances, Values::Open)
        .with(Dimension::Recompute, Values::Open)
        .with(Dimension::Tensor, Values::Between(1, 4))
        .with(Dimension::MicroBatch, Values::Between(1, 2));
    let space = Space::with(&plan, choices);
    let (found, all) = (walk(space.clone()), exhaust(&space));
    let step = |one: Option<&shardscope_search::Outcome>| one.map(|one| one.step.get());
    let best = found.best().first().expect("one that fits");
    println!("{best:?} of {:?}, {} worked out", all.tally, found.tally().estimated);
    assert!(all.tally.estimated > 20, "{:?}", all.tally);
    assert_eq!(step(found.best().first()), step(all.best.as_ref()), "{best:?} for {:?}", all.best);
    // Gathering weights within a node is the fastest.
    assert!(best.variant.instances > 1, "{best:?}");
}

/// The fastest in full spaces, an hour of work: `cargo test --release -p shardscope-search -- --ignored`.
#[test]
#[ignore = "tries some ten million layouts"]
fn over_whole_spaces_too() {
    for (name, ..) in PAIRS {
        let space = Space::from_plan(&plan(name));
        let (found, all) = (walk(space.clone()), exhaust(&space));
        let step = |one: Option<&shardscope_search::Outcome>| one.map(|one| one.step.get());
        println!(
            "{name}: {:?} s of {} layouts, {} of them worked out ({} by the search)",
            step(all.best.as_ref()),
            all.tally.decided(),
            all.tally.estimated,
            found.tally().estimated
        );
        assert_eq!(step(found.best().first()), step(all.best.as_ref()), "{name}");
    }
}
