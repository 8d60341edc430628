//! Times with exact relations: what a measured step scales, what plans share, and a schedule of zero durations.

use shardscope::catalog;
use shardscope::estimate::compute::Issue;
use shardscope::estimate::step_fault;
use shardscope::estimate::time::{Draft, Sections, measured_factor, step_seconds, step_seconds_issued, time};
use shardscope::explain::Breakdown;
use shardscope::launch::resolve;
use shardscope::plan::{PipelineSchedule, Plan};
use shardscope::schedule::{Action, ChunkTime, Order, Shape, StageDurations, timeline};
use shardscope::units::Seconds;

/// The plan of a model in the catalog with settings as in a link.
pub(crate) fn plan(model: &str, link: &str) -> Plan {
    let own = link.split('&').filter(|word| !word.is_empty());
    let own: Vec<(String, String)> = own
        .map(|word| word.split_once('=').unwrap_or((word, "true")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let known = catalog::model(model).map(|(_, known)| known).unwrap_or_default();
    let known = known.into_iter().map(|(field, value)| (field.name().to_owned(), value));
    let settings: Vec<_> =
        known.filter(|(name, _)| own.iter().all(|(other, _)| other != name)).chain(own.clone()).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Two stages, the first with dense layers and the second with experts, tied, small enough to wait for the host, with
/// gradients reduced concurrently with the products.
const EXPERTS: &str = "accelerator=H100-SXM&gpus_per_node=8&num_nodes=2&num_layers=8&first_k_dense_replace=4&\
    expert_model_parallel_size=2&tensor_model_parallel_size=2&pipeline_model_parallel_size=2&context_parallel_size=2&sequence_parallel&seq_length=256&\
    micro_batch_size=1&global_batch_size=64&bf16&use_distributed_optimizer&gradient_accumulation_fusion=false&\
    untie_embeddings_and_output_weights=false&moe_token_dispatcher_type=alltoall";

/// Checks that the parts of `one` are twice those of `other`.
fn are_twice(one: &Breakdown<Seconds>, other: &Breakdown<Seconds>) {
    assert_eq!(one.value().get(), 2.0 * other.value().get(), "{}", one.label());
    assert_eq!(one.children().len(), other.children().len(), "{}", one.label());
    one.children().iter().zip(other.children()).for_each(|(one, other)| are_twice(one, other));
}

/// The ratio of a measured step to its estimate that makes a plan's family apply a factor of exactly two: doubling a
/// number is exact.
fn doubling(settings: &str) -> f64 {
    let factor = |ratio: f64| {
        measured_factor(&plan("Mixtral-8x7B", &format!("{settings}&measured_over_estimated={ratio}")))
    };
    // The family's share of a ratio is a power of it.
    let near = 2.0_f64.powf(1.0 / factor(2.0).log2());
    let up = std::iter::successors(Some(near), |ratio| Some(ratio.next_up()));
    let down = std::iter::successors(Some(near), |ratio| Some(ratio.next_down()));
    up.take(9).chain(down.take(9)).find(|ratio| factor(*ratio) == 2.0).expect("one of its neighbours")
}

/// Most of the factor with experts is common to a run's layouts.
#[test]
fn a_step_measured_at_twice_the_estimate_doubles_every_part() {
    let before = time(&plan("Mixtral-8x7B", EXPERTS));
    let ratio = doubling(EXPERTS);
    assert!((2.0..3.0).contains(&ratio), "{ratio}");
    let measured = plan("Mixtral-8x7B", &format!("{EXPERTS}&measured_over_estimated={ratio}"));
    assert_eq!(measured_factor(&measured), 2.0);
    let after = time(&measured);
    are_twice(&after.breakdown, &before.breakdown);
    for part in ["tensor", "expert", "context", "host"] {
        assert!(before.breakdown.child(part).is_some_and(|part| part.value() > Seconds::ZERO), "{part}");
    }
    assert_eq!(after.step.get(), 2.0 * before.step.get());
    assert_eq!(after.lower_bound.get(), 2.0 * before.lower_bound.get());
    assert_eq!(after.schedule.pipeline.get(), 2.0 * before.schedule.pipeline.get());
    let (after, before) = (&after.schedule.durations, &before.schedule.durations);
    for (after, before) in after.chunks.iter().flatten().zip(before.chunks.iter().flatten()) {
        assert_eq!(after.forward.get(), 2.0 * before.forward.get());
        assert_eq!(after.backward.get(), 2.0 * before.backward.get());
        assert_eq!(after.weight.get(), 2.0 * before.weight.get());
    }
    for (after, before) in after.sends.iter().zip(&before.sends) {
        assert_eq!(after.get(), 2.0 * before.get());
    }
}

/// A ratio of zero is not a measurement.
#[test]
fn a_step_of_no_time_is_no_measurement() {
    let mut draft = super::drafts::Draft::new(&plan("Mixtral-8x7B", EXPERTS));
    for (ratio, factor) in [(0.0, 1.0), (-4.0, 1.0), (doubling(EXPERTS), 2.0)] {
        draft.cluster.measured.step = Some(ratio);
        assert_eq!(measured_factor(&draft.plan()), factor, "{ratio}");
    }
}

/// The common results of plans with equal sections leave each its own links: with other stages, data-parallel ranks are
/// placed elsewhere.
#[test]
fn plans_of_other_stages_have_rings_of_their_own() {
    let of = |stages: u64| {
        plan(
            "Llama-3-8B",
            &format!(
                "accelerator=H100-SXM&gpus_per_node=8&num_nodes=2&num_layers=8&seq_length=2048&bf16&micro_batch_size=1&\
                 global_batch_size=64&tensor_model_parallel_size=2&pipeline_model_parallel_size={stages}"
            ),
        )
    };
    let mut known = Sections::default();
    for stages in [8, 1, 2, 4, 1, 8] {
        let plan = of(stages);
        let alone = Draft::new(&plan, &mut Sections::default());
        let beside = Draft::new(&plan, &mut known);
        assert_eq!((beside.least(), beside.exact()), (alone.least(), alone.exact()), "{stages} stages");
    }
}

/// An extrapolated schedule may be off by its stated tolerance, others by nothing.
#[test]
fn a_step_a_little_below_its_bound_is_a_fault_where_all_of_it_was_run() {
    let of = |samples: u64| {
        plan(
            "Llama-3-8B",
            &format!(
                "accelerator=H100-SXM&gpus_per_node=8&num_nodes=2&num_layers=8&seq_length=2048&bf16&micro_batch_size=1&\
                 global_batch_size={samples}&tensor_model_parallel_size=4&pipeline_model_parallel_size=4"
            ),
        )
    };
    for (samples, continued) in [(64, false), (1 << 20, true)] {
        let plan = of(samples);
        let worked_out = time(&plan);
        assert_eq!(
            worked_out.schedule.simulated < worked_out.schedule.shape.micro_batches,
            continued,
            "{samples}"
        );
        let fault = step_fault(&plan, worked_out.lower_bound * 0.99);
        assert_eq!(fault.is_none(), continued, "{samples}: {fault:?}");
    }
}

/// If nothing takes time, nothing is idle.
#[test]
fn a_schedule_of_no_time_has_no_bubble() {
    let kind = PipelineSchedule::OneForwardOneBackward;
    let shape = Shape {
        kind,
        stages: 2,
        chunks: 1,
        group: 2,
        micro_batches: 4,
        extra_warmup: false,
        all_warmup_when_few: false,
    }
    .settled();
    let time = ChunkTime { forward: Seconds::ZERO, backward: Seconds::ZERO, weight: Seconds::ZERO };
    let durations =
        StageDurations { chunks: vec![vec![time]; 2], sends: vec![Seconds::ZERO; 2], blocking: false };
    let order = Order::new(shape);
    assert_eq!(timeline(&order, &durations).bubble(), 0.0);
    assert!(!order.is_empty());
    // The minimum: one micro-batch on one stage.
    let least = Shape { stages: 1, micro_batches: 1, ..shape }.settled();
    assert_eq!(Order::new(least).len(), 2);
}

/// The result of torch 2.15 itself for two ranks (`ScheduleZBVZeroBubble._calculate_single_rank_operations`): the
/// stage, then `F`, `I` for input gradients, `W` for weight gradients, and the micro-batch. Three micro-batches just
/// fill the V, two leave out passes.
#[test]
fn few_micro_batches_go_through_the_v_as_in_torch() {
    const RECORDED: [(u32, u32, &str); 4] = [
        (3, 0, "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2"),
        (3, 1, "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2"),
        (2, 0, "0F0 0F1 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 0I1 0W1"),
        (2, 1, "1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 2I1 2W1 1I1 1W1"),
    ];
    for (micro_batches, rank, recorded) in RECORDED {
        let kind = PipelineSchedule::ZeroBubbleV;
        let shape = Shape {
            kind,
            stages: 2,
            chunks: 2,
            group: 2,
            micro_batches,
            extra_warmup: false,
            all_warmup_when_few: false,
        };
        let worked_out: Vec<String> = Order::of_stage(shape.settled(), rank)
            .into_iter()
            .map(|event| {
                let stage = if event.chunk == 0 { rank } else { 3 - rank };
                let letter = match event.action {
                    Action::Forward => "F",
                    Action::BackwardInput => "I",
                    Action::WeightGradient => "W",
                    Action::Backward => "B",
                };
                format!("{stage}{letter}{}", event.micro_batch)
            })
            .collect();
        assert_eq!(worked_out.join(" "), recorded, "{micro_batches} micro-batches, rank {rank}");
    }
}

/// The host time chosen by a caller gives the plan's estimate if the choice is the plan's own; twice of it takes twice
/// as long if nothing else is waited for.
#[test]
fn what_the_host_spends_may_be_chosen() {
    let small = plan(
        "Llama-3-8B",
        "accelerator=H100-SXM&num_nodes=1&gpus_per_node=1&num_layers=8&hidden_size=256&num_attention_heads=4&\
        num_query_groups=4&ffn_hidden_size=512&seq_length=128&micro_batch_size=1&global_batch_size=64&bf16",
    );
    let own = Issue::new(small.recipe(), &small.cluster().accelerator);
    assert_eq!(step_seconds_issued(&small, own), step_seconds(&small));
    let twice = Issue {
        forward: own.forward * 2.0,
        backward: own.backward * 2.0,
        kernel: own.kernel * 2.0,
        message: own.message * 2.0,
        ..own
    };
    assert!(step_seconds_issued(&small, twice) > step_seconds(&small) * 1.5);
}
