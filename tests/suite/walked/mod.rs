//! An independent computation of parameters and saved activations, for plans with all features mixed: every rank holds
//! its tensors one by one, and every layer runs as a program whose operations save storages. It uses no closed forms,
//! and shares nothing but the plan's own settings with the estimators.
//!
//! For Mamba-2 and layers of one block, parameters are walked. What linear mixers, adapters and plain PyTorch trainers
//! keep is not: `kept_by_*.rs` compares those with recorded runs.

mod draw;
mod feed_forward;
mod forward;
mod layer;
mod ranks;
mod tape;

use std::collections::BTreeMap;

use proptest::prelude::ProptestConfig;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngSeed, TestRunner};
use shardscope::estimate::{kept_by_chunk, memory, parameters};
use shardscope::launch::resolve;
use shardscope::plan::{AttentionKernel, DpSharding, Plan, Recompute};

use super::drawn::{config, on_all_processors, wanted};

/// Plans in a normal run; `SHARDSCOPE_PLANS=100000` requests more.
const PLANS: u64 = 1000;
/// Plans per thread at a time.
const AT_ONCE: u64 = 50;

/// The named features of a plan, so that a test can check that each occurred.
fn features(plan: &Plan) -> Vec<&'static str> {
    let (model, layout, recipe) = (plan.model(), plan.layout(), plan.recipe());
    let all = [
        (layout.tensor > 1, "tensor"),
        (layout.sequence_parallel, "sequence"),
        (layout.pipeline > 1, "pipeline"),
        (layout.virtual_pipeline > 1, "interleaved"),
        (layout.context > 1, "context"),
        (layout.expert > 1, "expert"),
        (layout.expert_tensor != layout.tensor, "expert tensor"),
        (model.experts.is_some(), "experts"),
        (model.latent.is_some(), "latent attention"),
        (model.latent.is_some() && layout.sequence_parallel, "latent attention with sequence"),
        (model.qk_layernorm, "norms of heads"),
        (model.mixers.output_gate, "gated attention"),
        (model.mtp_num_layers > 0, "multi-token prediction"),
        (model.mixers.linear.is_some(), "Mamba-2"),
        (model.mixers.single_block, "layers of one block"),
        (recipe.hidden_dropout, "dropout"),
        (recipe.attention_kernel == AttentionKernel::Unfused, "unfused attention"),
        (matches!(recipe.recompute, Recompute::Selective(_)), "selective"),
        (matches!(recipe.recompute, Recompute::Uniform { .. }), "uniform"),
        (matches!(recipe.recompute, Recompute::Block { .. }), "block"),
    ];
    all.into_iter().filter_map(|(has, name)| has.then_some(name)).collect()
}

#[test]
fn every_tensor_of_every_rank_adds_up_to_the_estimates() {
    let wanted = wanted(PLANS);
    let parts = on_all_processors(wanted.div_ceil(AT_ONCE), |part| {
        let mut walked = Walked::default();
        walked.go(part, AT_ONCE.min(wanted - part * AT_ONCE));
        walked
    });
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for (feature, times) in parts.iter().flat_map(|part| &part.seen) {
        *seen.entry(feature).or_default() += times;
    }
    let found: Vec<_> = parts.iter().flat_map(|part| &part.found.0).take(MOST_LISTED).cloned().collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    let [plans, drawn, chunks] =
        [|part: &Walked| part.plans, |part: &Walked| part.drawn, |part: &Walked| part.chunks]
            .map(|count| parts.iter().map(count).sum::<u64>());
    assert_eq!(plans, wanted);
    println!("{plans} plans of {drawn} drawn, {chunks} chunks; {seen:?}");
    for feature in draw::FEATURES {
        let times = seen.get(feature).copied().unwrap_or(0);
        assert!(times * 200 >= wanted, "{feature} in {times} of {wanted} plans");
    }
}

/// The plans walked by one thread.
#[derive(Default)]
struct Walked {
    plans: u64,
    drawn: u64,
    chunks: u64,
    seen: BTreeMap<&'static str, u64>,
    found: Differences,
}

impl Walked {
    /// Draws its own plans for `part` until it has walked `wanted`.
    fn go(&mut self, part: u64, wanted: u64) {
        let mut runner = TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(part), ..config(1) });
        let strategy = draw::choices();
        while self.plans < wanted {
            self.drawn += 1;
            assert!(self.drawn < 100 + 40 * wanted, "{} plans of {} drawn", self.plans, self.drawn);
            let settings = draw::settings(&strategy.new_tree(&mut runner).expect("choices").current());
            let Some(plan) = resolve(&[], &settings).plan else { continue };
            // The input that multi-token prediction passes to its layer has 16 bits whatever the residual stream has;
            // the estimates assume that both are as wide as the stream: a known gap of S·h·(Br - B) per depth.
            if plan.model().mtp_num_layers > 0 && plan.recipe().fp32_residual {
                continue;
            }
            self.plans += 1;
            for feature in features(&plan) {
                *self.seen.entry(feature).or_default() += 1;
            }
            let context = || {
                settings.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            };
            same_parameters(&plan, &mut self.found, &context);
            if plan.model().mixers.linear.is_some() {
                continue;
            }
            self.chunks += same_activations(&plan, &mut self.found, &context);
        }
    }
}

/// The differences found, up to a limit.
#[derive(Default)]
struct Differences(Vec<String>);

/// Maximum number of differences that are reported.
const MOST_LISTED: usize = 8;

impl Differences {
    fn compare(&mut self, what: &str, estimated: u64, walked: u64, context: impl FnOnce() -> String) {
        if estimated != walked && self.0.len() < MOST_LISTED {
            self.0.push(format!("{what}: estimated {estimated}, walked {walked}; {}", context()));
        }
    }
}

fn same_parameters(plan: &Plan, found: &mut Differences, settings: &dyn Fn() -> String) {
    let counted = parameters(plan);
    let walked = ranks::walk(plan);
    found.compare("parameters", counted.total.get(), walked.total, settings);
    found.compare("parameters met by a token", counted.active_per_token.get(), walked.active, settings);
    let memory = memory(plan);
    let recipe = plan.recipe();
    for rank in &walked.ranks {
        let of = &counted.ranks[rank.stage as usize];
        let context = || format!("stage {} of {}", rank.stage, settings());
        found.compare("parameters of a rank", of.count.get(), rank.held, context);
        found.compare("of its experts", of.expert_count.get(), rank.of_experts, context);
        if recipe.dp_sharding == DpSharding::Replicated {
            // bf16 weights, fp32 gradients, and for Adam two moments and the fp32 weights. Sharded tensors are also
            // padded: `buffers.rs` compares that.
            let totals = &memory.ranks[rank.stage as usize].totals;
            found.compare("bytes of weights", totals.parameters.get(), 2 * rank.held, context);
            found.compare("bytes of optimizer states", totals.optimizer.get(), 12 * rank.held, context);
        }
    }
}

fn same_activations(plan: &Plan, found: &mut Differences, settings: &dyn Fn() -> String) -> u64 {
    let mut chunks = 0;
    for stage in &plan.layout().stages.stages {
        for chunk in &stage.chunks {
            let tape = forward::run(plan, chunk);
            let context = || format!("{chunk:?} of {}; walked {tape:?}", settings());
            found.compare("saved activations", kept_by_chunk(plan, chunk).get(), tape.bytes(), context);
            chunks += 1;
        }
    }
    chunks
}
