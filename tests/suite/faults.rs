//! What no machine can do, law by law: by what factor a figure exceeds the possible, from figures set by hand.

use shardscope::estimate::time::{Time, time};
use shardscope::estimate::traffic::{Traffic, traffic};
use shardscope::estimate::{Fault, FlopCounts, Law, Memory, fault, flops, memory, step_fault, time_fault};
use shardscope::plan::Plan;
use shardscope::units::{Bytes, BytesPerSecond, Flops, Seconds};

use super::drafts::{Draft, settled};

/// A plan with pipeline stages, with its time set to half a second, which violates nothing.
fn halfway() -> (Plan, Time, Memory, Traffic) {
    let plan = settled(&[("pipeline_model_parallel_size", "2"), ("global_batch_size", "16")]);
    let mut of = time(&plan);
    of.step = Seconds::new(0.5);
    of.lower_bound = Seconds::new(0.5);
    of.flops = counts(192.0, 96.0, 320.0);
    of.mfu = 0.5;
    of.schedule.simulated = of.schedule.shape.micro_batches;
    let (memory, traffic) = (memory(&plan), traffic(&plan));
    assert_eq!(fault(&plan, &of, &memory, &traffic), None);
    (plan, of, memory, traffic)
}

fn counts(model: f64, causal: f64, hardware: f64) -> FlopCounts {
    let [model, causal, hardware] = [model, causal, hardware].map(Flops::new);
    FlopCounts { model, causal, hardware, megatron: Some(model), narayanan: None }
}

fn broken(law: Law, times: f64, step: f64) -> Option<Fault> {
    Some(Fault { law, times, step: Seconds::new(step) })
}

#[test]
fn flops_are_held_against_what_the_peak_does_in_the_step() {
    let (_, mut of, _, _) = halfway();
    // 192 FLOPs at 2.5 times the peak: it does 76.8 in that time, and 96 remain for the causal half.
    of.mfu = 2.5;
    assert_eq!(time_fault(&of), broken(Law::ModelFlops, 96.0 / (192.0 / 2.5), 0.5));
    // At 1.5 times it does 128. Of 320 recomputed ones 96 · 4 / 3 lie above the diagonal: 192 remain.
    of.mfu = 1.5;
    assert_eq!(time_fault(&of), broken(Law::HardwareFlops, 1.5, 0.5));
    // At 1 it does 192, which is what remains.
    of.mfu = 1.0;
    assert_eq!(time_fault(&of), None);
    // Without a diagonal: exactly the peak, and above it by less and by more than a different summation order can
    // explain.
    of.flops = counts(64.0, 64.0, 64.0);
    assert_eq!(time_fault(&of), None);
    of.mfu = 1.0 + 5e-10;
    assert_eq!(time_fault(&of), None);
    of.mfu = 1.0 + 2e-9;
    assert_eq!(time_fault(&of).map(|fault| fault.law), Some(Law::ModelFlops));
    for no_number in [f64::NAN, f64::INFINITY] {
        of.mfu = no_number;
        assert!(time_fault(&of).is_some(), "{no_number}");
    }
}

#[test]
fn a_step_is_not_below_its_bound() {
    let (_, mut of, _, _) = halfway();
    of.lower_bound = Seconds::new(0.75);
    assert_eq!(time_fault(&of), broken(Law::LowerBound, 1.5 / (1.0 + 1e-9), 0.5));
    // One per cent below it is a fault for a fully simulated step, but not for an extrapolated one.
    of.lower_bound = Seconds::new(0.505);
    assert_eq!(time_fault(&of).map(|fault| fault.law), Some(Law::LowerBound));
    of.schedule.simulated -= 1;
    assert_eq!(time_fault(&of), None);
    of.lower_bound = Seconds::new(0.75);
    assert_eq!(time_fault(&of), broken(Law::LowerBound, 1.5 / 1.02, 0.5));
}

#[test]
fn what_stays_in_memory_is_read_once_a_step() {
    let (plan, of, mut memory, traffic) = halfway();
    // 3.35 TB/s for half a second.
    let last = memory.ranks.len() - 1;
    memory.ranks[last].totals.between_steps = Bytes::new(3_350_000_000_000);
    assert_eq!(fault(&plan, &of, &memory, &traffic), broken(Law::MemoryBandwidth, 2.0, 0.5));
    // The time alone cannot detect it.
    assert_eq!(time_fault(&of), None);
    // A fault of the time comes first.
    let slow = Time { mfu: 1.5, ..of };
    assert_eq!(fault(&plan, &slow, &memory, &traffic), broken(Law::HardwareFlops, 1.5, 0.5));
}

#[test]
fn both_links_of_the_busiest_stage_carry_what_it_sends_and_half_of_it_where_switches_add_up() {
    let (plan, of, memory, traffic) = halfway();
    let most = traffic.stages().iter().map(|stage| stage.wire.get()).max().unwrap_or(0);
    assert!(most > 0);
    let mut draft = Draft::new(&plan);
    // A quarter of it per second in total, an eighth in the step, twice as much if it is reduced in the network.
    let accelerator = &mut draft.cluster.accelerator;
    accelerator.fast_link.bandwidth = BytesPerSecond::new(most as f64 * 3.0 / 16.0);
    accelerator.network.bandwidth = BytesPerSecond::new(most as f64 / 16.0);
    assert_eq!(fault(&draft.plan(), &of, &memory, &traffic), broken(Law::LinkBandwidth, 4.0, 0.5));
}

#[test]
fn a_step_alone_is_held_against_the_same_laws() {
    let plan = settled(&[("global_batch_size", "16")]);
    assert_eq!(step_fault(&plan, time(&plan).step), None);
    // A power of two, so that nothing is rounded: 32 H100s of 989 TFLOP/s.
    let step = 2_f64.powi(-20);
    let possible = 989e12 * 32.0 * step;
    let times = flops(&plan).causal.get() / possible;
    assert!(times > 1.0);
    assert_eq!(step_fault(&plan, Seconds::new(step)), broken(Law::ModelFlops, times, step));
}

#[test]
fn a_fault_says_its_law_and_by_how_much() {
    let of = |law| Fault { law, times: 1.5, step: Seconds::new(2.0) }.message();
    let said = [
        (Law::ModelFlops, "would need more FLOPs per second for the model than the accelerator's dense peak"),
        (
            Law::HardwareFlops,
            "would need more FLOPs per second, recomputation counted, than the accelerator's dense peak",
        ),
        (
            Law::MemoryBandwidth,
            "would read weights and optimizer states faster than the accelerator's memory",
        ),
        (Law::LinkBandwidth, "would send more than the accelerator's links carry"),
        (Law::LowerBound, "would be faster than with everything overlapped that can be"),
    ];
    for (law, words) in said {
        assert_eq!(
            of(law),
            format!("this plan cannot be estimated: a step of 2.00 s {words} (1.50 times)"),
            "{law:?}"
        );
    }
}
