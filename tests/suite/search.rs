//! The search: deterministic, stoppable, and its results are plans that fit.

use shardscope::estimate::memory_totals;
use shardscope::estimate::time::exact_step_seconds;
use shardscope::launch::plan_from_flags;
use shardscope::plan::Plan;
use shardscope::search::{Choices, Dimension, Values, Walk};

fn plan(gpus: u64, more: &str) -> Plan {
    let flags = format!(
        "--num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
         --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear \
         --normalization RMSNorm --position-embedding-type rope --use-distributed-optimizer {more}"
    );
    plan_from_flags(&flags, gpus, 8, "H100-SXM").expect("a plan")
}

/// Part of the search space: what a test can cover without optimisation.
fn some() -> Choices {
    Choices::default()
        .with(Dimension::Context, Values::Stated)
        .with(Dimension::RankOrder, Values::Stated)
        .with(Dimension::MicroBatch, Values::Between(1, 2))
        .with(Dimension::Pipeline, Values::Between(1, 4))
}

#[test]
fn results_are_plans_that_fit_and_the_plan_itself_is_among_the_tried() {
    let plan = plan(16, "");
    let mut walk = Walk::with(&plan, some());
    while walk.step(64) {}
    let (tried, all) = walk.progress();
    assert_eq!(tried, all);
    assert!(walk.tally().estimated > 0, "{:?}", walk.tally());
    let own = exact_step_seconds(&plan);
    let best = walk.best().first().expect("a layout that fits");
    assert!(best.step <= own, "the best is no slower than the plan itself");
    for outcome in walk.best().iter().take(10) {
        let changed = outcome.variant.apply(&plan).expect("a plan");
        let peak = memory_totals(&changed).iter().map(|totals| totals.peak_reserved).max();
        assert_eq!(peak, Some(outcome.peak));
        assert!(outcome.peak <= plan.cluster().accelerator.memory);
        assert_eq!(exact_step_seconds(&changed), outcome.step);
    }
    let sorted = walk.best().windows(2).all(|pair| pair[0].step <= pair[1].step);
    assert!(sorted);
    let frontier = walk.frontier();
    assert!(frontier.windows(2).all(|pair| pair[0].step < pair[1].step && pair[0].peak > pair[1].peak));
}

#[test]
fn however_it_is_cut_it_comes_to_the_same() {
    let plan = plan(8, "--num-experts 8 --expert-model-parallel-size 2");
    let mut whole = Walk::with(&plan, some());
    while whole.step(u64::MAX) {}
    let mut cut = Walk::with(&plan, some());
    while cut.step(7) {}
    assert_eq!(whole.tally(), cut.tally());
    assert_eq!(whole.best(), cut.best());
    assert_eq!(whole.frontier(), cut.frontier());
    assert!(!whole.best().is_empty());
}
