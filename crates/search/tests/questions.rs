//! The questions that users ask.

mod pairs;

use pairs::{of_flags, plan, plan_with};
use shardscope_launch::resolve;
use shardscope_plan::{DpSharding, Field, Plan, Variant};
use shardscope_search::{
    Candidate, Choices, Comparison, Dimension, Inquiry, Preferred, Question, Values, Walk, WhyNot, why_not,
};
use shardscope_source::Code;

/// A model small enough for tests to search around.
fn small(gpus: u64, more: &str) -> Plan {
    let flags = format!(
        "--num-layers 8 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \
         --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear \
         --normalization RMSNorm --position-embedding-type rope --use-distributed-optimizer {more}"
    );
    of_flags(gpus, "A100-SXM-40GB", &flags)
}

/// Only tensor and pipeline sizes, recomputation and two micro-batch sizes: enough to see a question answered.
fn few() -> Choices {
    let open = [Dimension::Tensor, Dimension::Pipeline, Dimension::Recompute];
    open.into_iter()
        .fold(Choices::stated(), |choices, dimension| choices.with(dimension, Values::Open))
        .with(Dimension::MicroBatch, Values::Between(1, 2))
}

fn asked(plan: &Plan, question: Question) -> Inquiry {
    let mut inquiry = Inquiry::new(plan, question, few());
    while inquiry.step(16) {}
    inquiry
}

#[test]
fn the_fewest_gpus_hold_it_and_fewer_of_those_tried_do_not() {
    let inquiry = asked(&small(8, ""), Question::FewestGpus);
    let chosen = inquiry.chosen().expect("it fits somewhere");
    let gpus = inquiry.reached()[chosen].gpus;
    assert!(gpus < 8, "2e9 parameters at 18 bytes are 36 GB");
    for reached in inquiry.reached() {
        assert_eq!(reached.outcome.as_ref().is_some_and(|one| !one.tight), reached.gpus >= gpus);
    }
    // 175e9 parameters at 18 bytes are 3.2 TB: at least 37 devices of 85 GB.
    let inquiry = asked(&plan("gpt-3 175b, 8 A100"), Question::FewestGpus);
    let chosen = inquiry.chosen().expect("it fits somewhere");
    let gpus = inquiry.reached()[chosen].gpus;
    assert!((40..=128).contains(&gpus), "{gpus}");
}

#[test]
fn the_longest_sequence_fits_and_the_next_does_not() {
    let inquiry = asked(&small(8, ""), Question::LongestSequence);
    let longest = inquiry.reached()[inquiry.chosen().expect("the run itself fits")].size;
    assert!(longest >= 8_192, "{longest}");
    let beyond = inquiry.reached().iter().filter(|one| one.size > longest);
    assert!(
        beyond.clone().count() > 0
            && beyond.into_iter().all(|one| one.outcome.as_ref().is_none_or(|one| one.tight))
    );
}

/// A table of learned positions ends where it ends: no longer sequence is tried, and the answer says why.
#[test]
fn learned_positions_bound_a_sequence() {
    let learned = small(8, "--position-embedding-type learned_absolute");
    let inquiry = asked(&learned, Question::LongestSequence);
    assert_eq!(inquiry.reached().len(), 1);
    assert_eq!(inquiry.answer(), "Sequences of 4,096 tokens fit; the model has positions for no longer ones");
}

#[test]
fn the_largest_micro_batch_is_reported_with_its_layout() {
    let inquiry = asked(&small(8, ""), Question::LargestMicroBatch);
    let reached = &inquiry.reached()[inquiry.chosen().expect("the run itself fits")];
    let outcome = reached.outcome.as_ref().expect("a layout");
    assert_eq!(outcome.variant.micro_batch_size, reached.size);
    assert!(reached.size >= 2);
}

#[test]
fn cost_and_time_follow_from_the_step() {
    let question = Question::Cheapest { tokens: 1_000_000_000, days: None, price: 2.0, most_nodes: 2 };
    let inquiry = asked(&small(8, ""), question);
    assert_eq!(inquiry.reached().iter().map(|one| one.gpus).collect::<Vec<_>>(), [8, 16]);
    for one in inquiry.reached() {
        let step = one.outcome.as_ref().expect("it fits").step.get();
        let steps = 1_000_000_000_u64.div_ceil(64 * 4_096) as f64;
        let days = steps * step / 86_400.0;
        assert!((one.days.expect("days") / days - 1.0).abs() < 1e-12);
        assert!((one.cost.expect("a cost") / (days * 24.0 * one.gpus as f64 * 2.0) - 1.0).abs() < 1e-12);
    }
    let chosen = inquiry.chosen().expect("an answer");
    let cost = |place: usize| inquiry.reached()[place].cost.expect("a cost");
    assert!((0..2).all(|other| cost(chosen) <= cost(other)));
    // Nothing finishes within a second.
    let question = Question::Cheapest { tokens: 1_000_000_000, days: Some(1e-5), price: 2.0, most_nodes: 2 };
    assert_eq!(asked(&small(8, ""), question).chosen(), None);
    // More nodes are faster, and never by more than their number.
    let scaling = asked(&small(8, ""), Question::Scaling { most_nodes: 4 });
    let rates: Vec<f64> = scaling.reached().iter().map(|one| one.tokens_per_second).collect();
    assert!(rates.windows(2).all(|pair| pair[1] > pair[0] && pair[1] < pair[0] * 2.05), "{rates:?}");
}

#[test]
fn why_not_says_what_is_wrong() {
    let base = plan_with("llama-3 8b, 8 H100", "");
    let own = Variant::from_plan(&base);
    let mut walk = Walk::with(&base, few());
    while walk.step(64) {}
    let best = walk.best()[0].variant.apply(&base).expect("a plan");
    let refused = Variant { tensor: 3, ..own.clone() };
    assert!(
        matches!(why_not(&refused.checked(&base), &best), WhyNot::Refused(why) if why[0].code == Code::WorldSize)
    );
    let replicated = Variant { sharding: DpSharding::Replicated, ..own.clone() };
    match why_not(&replicated.checked(&base), &best) {
        WhyNot::OutOfMemory(lack) => assert_eq!(lack.most.0, "optimizer states", "{lack:?}"),
        other => panic!("{other:?}"),
    }
    let slow = Variant {
        tensor: 8,
        recompute: shardscope_plan::Recompute::Uniform { num_layers: 1, distribute: false },
        ..own
    };
    match why_not(&slow.checked(&base), &best) {
        WhyNot::Slower(slower) => {
            assert!(slower.by.get() > 0.0);
            assert!(slower.parts.iter().any(|(part, _)| part == "recompute"), "{:?}", slower.parts);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(why_not(&Ok(best.clone()), &best), WhyNot::AsGood);
}

/// A model of 2.7e9 parameters on another accelerator.
fn candidate(name: &str, price: f64) -> Candidate {
    let gpus = 8;
    let flags = "--num-layers 12 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \
         --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear \
         --normalization RMSNorm --position-embedding-type rope --use-distributed-optimizer";
    Candidate {
        name: name.to_owned(),
        plan: of_flags(gpus, name, flags),
        before: vec![(Field::Accelerator, name.to_owned())],
        price: Some(price),
    }
}

#[test]
fn kinds_of_accelerators_are_compared() {
    let kinds = || vec![candidate("A100-SXM-40GB", 1.0), candidate("H200-SXM", 3.0)];
    let asked = |question, preferred| {
        let mut comparison = Comparison::new(kinds(), question, few(), preferred);
        while comparison.step(16) {}
        comparison
    };
    // 2.7e9 parameters at 18 bytes are 48 GB: one device of 141 GB holds them, and one of 40 GB does not.
    let fewest = asked(Question::FewestGpus, Preferred::FewestGpus);
    let gpus: Vec<u64> = fewest.answers().map(|(_, one)| one.expect("it fits somewhere").gpus).collect();
    assert_eq!((gpus[1], fewest.chosen()), (1, Some(1)), "{gpus:?}");
    assert!(gpus[0] > 1);
    let outcome = fewest.answers().nth(1).and_then(|(_, one)| one?.outcome.clone()).expect("a layout");
    assert!(outcome.changes.contains(&(Field::Accelerator, "H200-SXM".to_owned())), "{:?}", outcome.changes);
    // Each candidate's cost uses its own price.
    let question = Question::Cheapest { tokens: 1_000_000_000, days: None, price: 0.0, most_nodes: 1 };
    let cheapest = asked(question, Preferred::Cheapest);
    let costs: Vec<f64> =
        cheapest.answers().map(|(_, one)| one.and_then(|one| one.cost).expect("a cost")).collect();
    for ((candidate, answer), cost) in cheapest.answers().zip(&costs) {
        let (days, price) =
            (answer.and_then(|one| one.days).expect("days"), candidate.price.expect("a price"));
        assert!((cost / (days * 24.0 * 8.0 * price) - 1.0).abs() < 1e-12);
    }
    let chosen = cheapest.chosen().expect("an answer");
    assert!(costs.iter().all(|cost| costs[chosen] <= *cost));
    // The first that fits ends a comparison of candidates that are ordered best first.
    let first = asked(Question::Fits, Preferred::First);
    assert_eq!((first.chosen(), first.answers().count()), (Some(0), 1));
}

/// The length of a pack follows from the tokens per rank, and a micro-batch is one pack: the search may vary neither.
#[test]
fn packs_stay_as_they_are() {
    let flags = "--num-layers 8 --hidden-size 4096 --num-attention-heads 32 --global-batch-size 64 --vocab-size 32000 --bf16 \
                 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope \
                 --rollout-batch-size 8 --n-samples-per-prompt 8 --use-dynamic-batch-size --max-tokens-per-gpu 8192 \
                 --rollout-max-response-len 2048 --debug-train-only";
    let plan = of_flags(8, "H100-SXM", flags);
    assert_eq!((plan.recipe().num_micro_batches, plan.recipe().sample_length), (2, Some(2048)));
    let open = few().with(Dimension::Context, Values::Open).with(Dimension::MicroBatch, Values::Open);
    let mut walk = Walk::with(&plan, open);
    while walk.step(64) {}
    assert!(walk.best().len() > 1);
    for outcome in walk.best() {
        assert_eq!((outcome.variant.micro_batch_size, outcome.variant.context), (1, 1));
    }
    let inquiry = asked(&plan, Question::LargestMicroBatch);
    assert_eq!(inquiry.reached().iter().map(|one| one.size).collect::<Vec<_>>(), [1]);
}

/// Of an encoder-decoder the target's length varies, by the setting that states it apart from the source's.
#[test]
fn the_longest_target_of_an_encoder_decoder_is_proposed_as_that() {
    let settings = [
        ("model", "google/flan-t5-xl"),
        ("software", "hf_transformers"),
        ("source_length", "512"),
        ("target_length", "64"),
        ("micro_batch_size", "4"),
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("accelerator", "A100-SXM-80GB"),
    ];
    let with = |settings: &[(String, String)]| {
        let found = resolve(&[], settings);
        found.plan.unwrap_or_else(|| panic!("{:#?}\n{:#?}", found.diagnostics, found.not_modelled))
    };
    let own: Vec<(String, String)> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let plan = with(&own);
    let inquiry = asked(&plan, Question::LongestSequence);
    assert_eq!(inquiry.question().sizes(&plan), Field::TargetLength);
    let longest = &inquiry.reached()[inquiry.chosen().expect("the run itself fits")];
    assert!(longest.size > 64, "{}", longest.size);
    assert!(inquiry.answer().ends_with("tokens fit beside sources of 512"), "{}", inquiry.answer());
    let changes = &longest.outcome.as_ref().expect("a layout").changes;
    assert!(changes.contains(&(Field::TargetLength, longest.size.to_string())), "{changes:?}");
    assert!(!changes.iter().any(|(field, _)| *field == Field::SeqLength), "{changes:?}");
    // What is proposed is what the run then has.
    let more = changes.iter().map(|(field, value)| (field.name().to_owned(), value.clone()));
    let longer = with(&own.iter().cloned().chain(more).collect::<Vec<_>>());
    assert_eq!(longer.model().seq_length, longest.size);
    assert_eq!(longer.model().encoder, plan.model().encoder);
}
