//! Orders of micro-batches compared with Megatron-LM's own and with the claims of their papers.
//!
//! `data/megatron/schedules.jsonl`: warm-up counts and interleaved forward order, run at d98e8a64.
//! `data/megatron/inflight.jsonl`: chunk steps held per rank, counted by running its schedules.
//! `data/published/zero_bubble_bubbles.jsonl`: profiled pass times (ms) and bubble rates of Qi et al.
//! 2023, tables 5 and 6.

use serde_json::Value;
use shardscope::plan::PipelineSchedule;
use shardscope::schedule::{Action, ChunkTime, Order, Shape, StageDurations, timeline, totals};
use shardscope::units::Seconds;

use super::drawn::{on_all_processors, wanted};
use super::random::Random;
use super::sweeping::sweep;

pub(crate) const KINDS: [PipelineSchedule; 10] = [
    PipelineSchedule::OneForwardOneBackward,
    PipelineSchedule::GPipe,
    PipelineSchedule::ZeroBubbleH1,
    PipelineSchedule::ZeroBubbleH2,
    PipelineSchedule::ZeroBubbleV,
    PipelineSchedule::VHalf,
    PipelineSchedule::VMin,
    PipelineSchedule::OneForwardOneBackwardV,
    PipelineSchedule::DualPipe,
    PipelineSchedule::DualPipeV,
];

fn shape(kind: PipelineSchedule, stages: u32, chunks: u32, micro_batches: u32) -> Shape {
    let group = stages;
    Shape { kind, stages, chunks, group, micro_batches, extra_warmup: false, all_warmup_when_few: false }
        .settled()
}

fn lines(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.lines().map(|line| serde_json::from_str(line).expect("a case a line"))
}

fn number(case: &Value, key: &str) -> Option<u32> {
    case.get(key).and_then(Value::as_u64).map(|value| value as u32)
}

fn numbers(case: &Value, key: &str) -> Vec<u32> {
    case[key].as_array().unwrap().iter().map(|value| value.as_u64().unwrap() as u32).collect()
}

fn times(forward: f64, backward: f64, weight: f64) -> ChunkTime {
    ChunkTime {
        forward: Seconds::new(forward),
        backward: Seconds::new(backward),
        weight: Seconds::new(weight),
    }
}

#[test]
fn warmups_and_interleaved_order_are_megatrons() {
    let mut compared = 0;
    for case in lines(include_str!("../data/megatron/schedules.jsonl")) {
        let (stages, chunks) = (number(&case, "pp").unwrap(), number(&case, "vpp").unwrap_or(1));
        let shape = Shape {
            kind: PipelineSchedule::OneForwardOneBackward,
            stages,
            chunks,
            group: number(&case, "group").unwrap_or(stages),
            micro_batches: number(&case, "m").unwrap(),
            extra_warmup: case["extra"].as_bool().unwrap(),
            all_warmup_when_few: false,
        };
        let warmups: Vec<u32> = (0..stages).map(|stage| shape.warmup(stage)).collect();
        let remaining: Vec<u32> = warmups.iter().map(|warmup| shape.steps() - warmup).collect();
        assert_eq!(warmups, numbers(&case, "warmup"), "{}", case["id"]);
        assert_eq!(remaining, numbers(&case, "remaining"), "{}", case["id"]);
        let order = Order::new(shape);
        if let Some(expected) = case.get("order") {
            for stage in 0..stages {
                let found: Vec<[u32; 2]> = order
                    .events(stage)
                    .filter(|event| event.action == Action::Forward)
                    .map(|event| [event.micro_batch, event.chunk])
                    .collect();
                assert_eq!(&serde_json::json!(found), expected, "{}", case["id"]);
            }
        }
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} compared");
}

#[test]
fn held_micro_batches_are_those_counted_in_megatron() {
    let mut ranks = 0;
    for case in lines(include_str!("../data/megatron/inflight.jsonl")) {
        let kind = PipelineSchedule::OneForwardOneBackward;
        let [stages, chunks, m] = ["pp", "chunks", "m"].map(|key| number(&case, key).unwrap());
        let order = Order::new(shape(kind, stages, chunks, m));
        for (stage, held) in (0..stages).zip(numbers(&case, "held")) {
            assert_eq!(order.peak(stage, &vec![1; chunks as usize]), u64::from(held), "{case} {stage}");
            assert_eq!(order.shape().in_flight(stage), Some(u64::from(held)));
            assert_eq!(order.fullest(stage).iter().sum::<u64>(), u64::from(held));
            ranks += 1;
        }
    }
    assert_eq!(ranks, 84);
}

/// The 2023 code ran all forwards first when there are as many micro-batches as stages.
#[test]
fn the_2023_code_keeps_everything_with_few_micro_batches() {
    let kind = PipelineSchedule::OneForwardOneBackward;
    let legacy = |m| Shape { all_warmup_when_few: true, ..shape(kind, 4, 2, m) };
    assert_eq!(Order::new(legacy(4)).peak(3, &[1, 1]), 8);
    assert_eq!(Order::new(shape(kind, 4, 2, 4)).peak(3, &[1, 1]), 5);
    assert_eq!(Order::new(legacy(8)).peak(3, &[1, 1]), 5);
}

/// Every pass of every micro-batch on every chunk exactly once, and no stage waits forever.
#[test]
fn every_order_is_complete_and_runs() {
    for kind in KINDS {
        for (p, v) in [(1, 1), (2, 1), (4, 1), (6, 1), (7, 1), (8, 2), (5, 3), (16, 2)] {
            for m in [1, 2, 3, p, 2 * p - 1, 2 * p, 5 * p] {
                let shape = shape(kind, p, v, m);
                let order = Order::new(shape);
                let durations = StageDurations::even(&shape, times(1.0, 1.1, 0.7), Seconds::new(0.05));
                let run = timeline(&order, &durations);
                for stage in 0..p {
                    let events: Vec<_> = order.events(stage).collect();
                    assert_eq!(run.stages[stage as usize].len(), events.len(), "{kind:?} {p} {v} {m} stands");
                    let count = |action| events.iter().filter(|event| event.action == action).count() as u32;
                    let backward = count(Action::Backward) + count(Action::BackwardInput);
                    assert_eq!(count(Action::Forward), shape.steps(), "{kind:?} {p} {v} {m}");
                    assert_eq!(backward, shape.steps());
                    assert_eq!(count(Action::WeightGradient), count(Action::BackwardInput));
                    let mut keys: Vec<_> = events
                        .iter()
                        .map(|e| (e.action.is_backward(), e.action, e.chunk, e.micro_batch))
                        .collect();
                    keys.sort_unstable();
                    keys.dedup();
                    assert_eq!(keys.len(), events.len(), "no event twice");
                }
                assert_eq!(totals(shape, &durations).total, run.total);
            }
        }
    }
}

/// Schedules in a normal run; `SHARDSCOPE_PLANS=100000` requests more.
const SCHEDULES: u64 = 2_000;
/// Schedules per thread at a time, a multiple of the number of kinds.
const AT_ONCE: u64 = 50;

/// Random schedules, including uneven stages and messages: every event begins and ends when the slow reference says, to
/// the last bit.
#[test]
fn every_event_is_timed_as_by_sweeping() {
    let wanted = wanted(SCHEDULES);
    let parts = on_all_processors(wanted.div_ceil(AT_ONCE), |part| {
        let mut random = Random::new(19 + part);
        let rounds = AT_ONCE.min(wanted - part * AT_ONCE) as usize;
        let timed = (0..rounds).map(|round| timed_as_by_sweeping(KINDS[round % KINDS.len()], &mut random));
        timed.fold((0, 0), |all, one| (all.0 + one.0, all.1 + u64::from(one.1)))
    });
    let (events, blocked) = parts.into_iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    println!("{wanted} schedules, {events} events, {blocked} with blocking sends");
    assert!(events > 150 * wanted && blocked * 5 > wanted, "{events} events, {blocked} with blocking sends");
}

/// The number of events in a schedule drawn from `random`, and whether its sends block.
fn timed_as_by_sweeping(kind: PipelineSchedule, random: &mut Random) -> (u64, bool) {
    let stages = 1 + random.below(12) as u32;
    let chunks = 1 + random.below(4) as u32;
    let group = stages + random.below(4) as u32;
    let mut micro_batches = 1 + random.below(40) as u32;
    if chunks > 1 && micro_batches % group < stages {
        // Interleaving waits forever with fewer than p micro-batches after full groups; such plans are rejected.
        micro_batches = micro_batches.next_multiple_of(group);
    }
    let shape = Shape {
        kind,
        stages,
        chunks,
        group,
        micro_batches,
        extra_warmup: random.below(4) == 0,
        all_warmup_when_few: random.below(4) == 0,
    }
    .settled();
    let durations = uneven(&shape, random);
    let order = Order::new(shape);
    let (found, expected) = (timeline(&order, &durations), sweep(&order, &durations));
    let mut events = 0;
    for (stage, (found, expected)) in found.stages.iter().zip(&expected).enumerate() {
        assert_eq!(found.len(), order.events(stage as u32).count(), "{shape:?} stands still");
        let found: Vec<_> = found.iter().map(|timed| (timed.start.get(), timed.end.get())).collect();
        assert_eq!(&found, expected, "{shape:?} stage {stage}");
        events += found.len() as u64;
    }
    let ends = expected.iter().flatten().map(|(_, end)| *end);
    assert_eq!(found.total.get(), ends.fold(0.0, f64::max));
    (events, durations.blocking)
}

/// Different times for every stage, some of them zero.
fn uneven(shape: &Shape, random: &mut Random) -> StageDurations {
    let mut durations = StageDurations::even(shape, times(1.0, 1.0, 1.0), Seconds::ZERO);
    let mut draw = |most: u64| Seconds::new(random.below(most) as f64 / 64.0);
    for chunk in durations.chunks.iter_mut().flatten() {
        *chunk = ChunkTime { forward: draw(100), backward: draw(150), weight: draw(80) };
    }
    for send in &mut durations.sends {
        *send = draw(20);
    }
    durations.blocking = random.below(3) == 0;
    durations
}

#[test]
fn bubbles_of_equal_stages_are_the_textbooks() {
    let send = Seconds::ZERO;
    for (p, m) in [(2, 4), (4, 8), (8, 32), (16, 64)] {
        let (forward, backward, weight) = (1.0, 1.2, 0.8);
        let of = |kind, v: u32| {
            let shape = shape(kind, p, v, m);
            let share = f64::from(shape.chunks);
            let chunk = times(forward / share, backward / share, weight / share);
            totals(shape, &StageDurations::even(&shape, chunk, send))
        };
        let (ahead, ideal) = (f64::from(p - 1), f64::from(m) * (forward + backward + weight));
        let near = |found: Seconds, bubble: f64, what: &str| {
            assert!(
                (found.get() - ideal - bubble).abs() < 1e-9 * ideal,
                "{what} {p} {m}: {found:?} {bubble}"
            );
        };
        let whole = forward + backward + weight;
        near(of(PipelineSchedule::OneForwardOneBackward, 1).total, ahead * whole, "1F1B");
        near(of(PipelineSchedule::OneForwardOneBackward, 2).total, ahead * whole / 2.0, "interleaved");
        near(of(PipelineSchedule::OneForwardOneBackward, 4).total, ahead * whole / 4.0, "interleaved");
        near(of(PipelineSchedule::GPipe, 1).total, ahead * whole, "GPipe");
        near(of(PipelineSchedule::ZeroBubbleH1, 1).total, ahead * (forward + backward - weight), "ZB-H1");
        let h2 = of(PipelineSchedule::ZeroBubbleH2, 1).longest;
        near(h2, ahead * (forward + backward - 2.0 * weight).max(0.0), "ZB-H2");
    }
}

#[test]
fn zero_bubble_v_has_none_when_passes_take_equally_long() {
    for (p, m) in [(2, 8), (4, 8), (8, 16), (8, 40)] {
        let shape = shape(PipelineSchedule::ZeroBubbleV, p, 2, m);
        let durations = StageDurations::even(&shape, times(1.0, 1.0, 1.0), Seconds::ZERO);
        assert_eq!(totals(shape, &durations).longest.get(), f64::from(6 * m), "p = {p}, m = {m}");
    }
}

/// DualPipe's repository: bubble (p/2 - 1)(F&B + B - 3W), here without overlap: F&B = F + B.
#[test]
fn dual_pipe_bubbles_are_as_published() {
    for (p, m) in [(4, 16), (8, 20), (8, 32), (16, 64)] {
        let shape = shape(PipelineSchedule::DualPipe, p, 2, m);
        let (forward, input, weight) = (1.0, 1.0, 1.0);
        let durations = StageDurations::even(&shape, times(forward, input, weight), Seconds::ZERO);
        let ideal = f64::from(m) * (forward + input + weight);
        let bubble = totals(shape, &durations).total.get() - ideal;
        let published = f64::from(p / 2 - 1) * (forward + 2.0 * (input + weight) - 3.0 * weight);
        assert!((bubble - published).abs() < 1e-9, "{p} {m}: {bubble} {published}");
        let order = Order::new(shape);
        for stage in 0..p {
            assert!(order.peak(stage, &[1, 1]) <= u64::from(p) + 1, "at most p + 1 in flight");
        }
    }
}

#[test]
fn folded_orders_hold_what_their_paper_says() {
    for p in [4, 6, 8, 12, 16] {
        let most = |kind| {
            let order = Order::new(shape(kind, p, 2, 6 * p));
            (0..p).map(|stage| order.peak(stage, &[1, 1])).max().unwrap()
        };
        // In half stages: each micro-batch of a stage counts as two.
        assert_eq!(most(PipelineSchedule::ZeroBubbleV), u64::from(2 * p), "V-ZB p = {p}");
        let half = most(PipelineSchedule::VHalf);
        assert!(half <= u64::from(p + 2 + 1), "V-Half {half} p = {p}");
        let third = most(PipelineSchedule::VMin);
        assert!(third <= u64::from(2 * (p + 4)).div_ceil(3) + 1, "V-Min {third} p = {p}");
        let folded = most(PipelineSchedule::OneForwardOneBackwardV);
        assert!(folded <= u64::from(4 * p).div_ceil(3) + 3, "1F1B-V {folded} p = {p}");
        assert_eq!(
            Order::new(shape(PipelineSchedule::ZeroBubbleH1, p, 1, 6 * p)).peak(p - 1, &[1]),
            u64::from(p)
        );
    }
}

#[test]
fn bubble_rates_of_the_zero_bubble_paper() {
    let mut rows = 0;
    for case in lines(include_str!("../data/published/zero_bubble_bubbles.jsonl")) {
        let value = |key: &str| case[key].as_f64().unwrap();
        let (p, m) = (number(&case, "pp").unwrap(), number(&case, "m").unwrap());
        let (forward, backward, weight, send) = (value("F"), value("B"), value("W"), value("comm"));
        for (name, kind, chunks) in [
            ("1F1B", PipelineSchedule::OneForwardOneBackward, 1),
            ("ZB-H1", PipelineSchedule::ZeroBubbleH1, 1),
            ("ZB-H2", PipelineSchedule::ZeroBubbleH2, 1),
        ] {
            let shape = shape(kind, p, chunks, m);
            let durations =
                StageDurations::even(&shape, times(forward, backward, weight), Seconds::new(send));
            let cost = totals(shape, &durations).longest.get();
            let rate = 1.0 - f64::from(m) * (forward + backward + weight) / cost;
            println!("{} p {p} m {m} {name}: {rate:.4} published {:.4}", case["model"], value(name));
            assert!((rate - value(name)).abs() < 0.004, "{name} {case}: {rate}");
            rows += 1;
        }
    }
    assert_eq!(rows, 36);
}

#[test]
fn long_runs_continue_at_their_own_pace() {
    for kind in KINDS {
        let shape = shape(kind, 16, 2, 5_003);
        let order = Order::new(shape);
        let mut durations = StageDurations::even(&shape, times(1.0, 1.5, 0.5), Seconds::new(0.1));
        durations.chunks[3][0] = times(1.3, 1.6, 0.7);
        let (walked, continued) = (timeline(&order, &durations), totals(shape, &durations));
        let off = (walked.total.get() - continued.total.get()).abs() / walked.total.get();
        assert!(off < 1e-4, "{kind:?} {off}");
        assert!((walked.bubble() - continued.bubble()).abs() < 1e-4, "{kind:?}");
    }
}
