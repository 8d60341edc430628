//! Layouts that people ran or published are found or beaten, with the search starting from one stage without
//! recomputation. Printed side by side: the step of the published layout and that of the search.

mod pairs;

use pairs::plan;
use pairs::published::published;
use shardscope_estimate::Verdict;
use shardscope_estimate::memory_totals;
use shardscope_estimate::time::exact_step_seconds;
use shardscope_plan::{Recompute, StageSplit, Variant};
use shardscope_search::{Choices, Dimension, Space, Values, Walk};

/// One stage, without recomputation.
fn scratch(published: &Variant) -> Variant {
    Variant {
        pipeline: 1,
        virtual_pipeline: 1,
        group: None,
        split: StageSplit::EVEN,
        recompute: Recompute::None,
        sequence_parallel: published.tensor > 1,
        expert: 1,
        expert_tensor: published.tensor,
        ..published.clone()
    }
}

/// Dimensions and the range of sizes in which they are varied.
type Ranges = &'static [(Dimension, u64, u64)];

#[test]
fn published_layouts_are_found_or_beaten() {
    use Dimension as D;
    // Ranges around the published layouts, so that an unoptimized test finishes in time.
    let held: [(&str, Ranges); 8] = [
        (
            "llama-3 405b, 16384 H100",
            &[(D::Tensor, 8, 8), (D::Pipeline, 16, 16), (D::Context, 1, 2), (D::MicroBatch, 1, 1)],
        ),
        ("gpt-3 175b, 512 A100", &[(D::Tensor, 8, 8), (D::Pipeline, 1, 8), (D::MicroBatch, 1, 2)]),
        ("bloom 176b, 384 A100", &[(D::Tensor, 4, 4), (D::Pipeline, 1, 12), (D::MicroBatch, 1, 2)]),
        ("gpt-3 530b, 2240 A100", &[(D::Tensor, 8, 8), (D::Pipeline, 35, 35), (D::MicroBatch, 1, 1)]),
        ("gpt-3 1t, 512 A100", &[(D::Tensor, 8, 8), (D::Pipeline, 1, 64), (D::MicroBatch, 1, 1)]),
        (
            "mixtral 8x7b, 64 H100",
            &[(D::Tensor, 1, 2), (D::Pipeline, 1, 4), (D::Expert, 8, 8), (D::MicroBatch, 1, 1)],
        ),
        (
            "qwen3 235b, 256 H100",
            &[(D::Tensor, 2, 2), (D::Pipeline, 8, 8), (D::Expert, 32, 32), (D::MicroBatch, 1, 1)],
        ),
        (
            "deepseek-v3, 2048 H800",
            &[(D::Tensor, 1, 1), (D::Pipeline, 16, 16), (D::Expert, 64, 64), (D::MicroBatch, 1, 1)],
        ),
    ];
    for (name, ranges) in held {
        let stated = plan(name);
        let human = published(name, &stated);
        let ran = human.apply(&stated).expect("a published layout");
        let totals = memory_totals(&ran);
        let capacity = ran.cluster().accelerator.memory;
        let fits = totals.iter().all(|one| one.verdict(capacity, ran.recipe().headroom) == Verdict::Fits);
        let theirs = exact_step_seconds(&ran).get();
        // If no batch divides over that many replicas, the search begins from the published number of stages.
        let from = scratch(&human).apply(&stated);
        let from = from.or_else(|| Variant { recompute: Recompute::None, ..human.clone() }.apply(&stated));
        let from = from.expect("a plan");
        let mut choices = Choices::default()
            .with(D::Context, Values::Between(1, 1))
            .with(D::ExpertTensor, Values::Between(1, 1))
            .with(D::RankOrder, Values::Stated);
        for (dimension, least, most) in ranges {
            choices = choices.with(*dimension, Values::Between(*least, *most));
        }
        let mut walk = Walk::over(Space::with(&from, choices), 1);
        while walk.step(64) {}
        let ours = walk.best().first().map(|one| one.step.get());
        println!(
            "{name}: published {theirs:.3} s (fits: {fits}), searched {ours:?} s, {} decided",
            walk.tally().decided()
        );
        let ours = ours.expect("a layout");
        assert!(ours <= theirs || !fits, "{name}: {ours} s for {theirs} s");
    }
}
