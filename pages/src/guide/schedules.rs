//! Pipeline schedules, simulated.

use maud::html;
use shardscope::plan::PipelineSchedule;
use shardscope::schedule::{ChunkTime, Order, Shape, StageDurations, timeline};
use shardscope::units::{Seconds, decimal, percent};

use super::write::{Chapter, Row, code, inline, plain, prose, setting_link, table};

/// Stages and micro-batches of the table.
const STAGES: u32 = 8;
const MICRO_BATCHES: u32 = 32;

/// The schedule in words, with its source.
fn about(kind: PipelineSchedule) -> &'static str {
    match kind {
        PipelineSchedule::OneForwardOneBackward => {
            "[1F1B]: forward and backward in turns. Narayanan et al. 2021, section 2.2"
        }
        PipelineSchedule::GPipe => "[GPipe]: all forwards, then all backwards. Huang et al. 2019",
        PipelineSchedule::ZeroBubbleH1 => {
            "weight gradients fill the end's [bubble|zero bubble]. Qi et al. 2023, section 2"
        }
        PipelineSchedule::ZeroBubbleH2 => {
            "more forwards ahead, no gaps left within a stage. Qi et al. 2023, section 2"
        }
        PipelineSchedule::ZeroBubbleV => "two chunks, down and up again. Qi et al. 2024",
        PipelineSchedule::VHalf => "[V schedules]: about half the activations of 1F1B. Qi et al. 2024",
        PipelineSchedule::VMin => "about a third of the activations of 1F1B. Qi et al. 2024",
        PipelineSchedule::OneForwardOneBackwardV => {
            "chunks folded into a V, backward not split. Qi et al. 2024, appendix"
        }
        PipelineSchedule::DualPipe => {
            "[DualPipe]: two directions at once, two copies of the weights. DeepSeek-V3, section 3.2.1"
        }
        PipelineSchedule::DualPipeV => "DualPipe cut in half and folded. DeepSeek's DualPipe repository",
    }
}

/// Every kind with what it holds and how long it waits, for even stages.
pub(super) fn chapter() -> Chapter {
    let mut rows = Vec::new();
    for kind in PipelineSchedule::all() {
        rows.push(row(kind, 1));
        // The same schedule, interleaved.
        if kind == PipelineSchedule::OneForwardOneBackward {
            rows.push(row(kind, 2));
        }
    }
    let lead = prose(&format!(
        "Each schedule is simulated event by event with the times of the plan, so the [bubble] and the micro-batches [in \
         flight] are measured rather than taken from a closed form. This table uses {STAGES} equal stages, \
         {MICRO_BATCHES} micro-batches, a backward pass twice as long as the forward pass, and messages that take no \
         time. In flight: the most activations a stage holds, in units of one micro-batch on one stage. Idle: the share \
         of the time between the first start and the last end in which a stage does nothing, including the wait before it \
         starts."
    ));
    let set_by = html! {
        p { "Set by " a href=(setting_link("pipeline_schedule")) { (code("pipeline_schedule")) } "." }
    };
    let headings = ["Schedule", "What it is", ">in flight, first stage", ">last stage", ">idle"];
    let body = html! { (lead) (set_by) (table("Schedules", &headings, &rows)) };
    Chapter::new("schedules", "Pipeline schedules", body)
}

fn row(kind: PipelineSchedule, chunks: u32) -> Row {
    let shape = Shape {
        kind,
        stages: STAGES,
        chunks,
        group: 0,
        micro_batches: MICRO_BATCHES,
        extra_warmup: false,
        all_warmup_when_few: false,
    }
    .settled();
    // The model is as many stages' worth of work, however many parts it is cut into.
    let part = f64::from(shape.stages) / f64::from(shape.parts());
    let pass = Seconds::new(part);
    // Backward takes twice as long as forward: input gradients, then weight gradients.
    let times = ChunkTime { forward: pass, backward: pass, weight: pass };
    let order = Order::new(shape);
    let ran = timeline(&order, &StageDurations::even(&shape, times, Seconds::ZERO));
    let ones = vec![1; shape.chunks as usize];
    let held = |stage: u32| {
        #[allow(clippy::cast_precision_loss)]
        let count = order.peak(stage, &ones) as f64;
        decimal(count * part, if part < 1.0 { 1 } else { 0 })
    };
    let interleaved = chunks > 1 && kind == PipelineSchedule::OneForwardOneBackward;
    let (name, about) = if interleaved {
        (
            html! { (code(kind.name())) ", 2 chunks" },
            "interleaved: [virtual pipeline]. Narayanan et al. 2021, section 2.2.2",
        )
    } else {
        (code(kind.name()), about(kind))
    };
    let id = format!("schedule-{}{}", kind.name(), if interleaved { "-interleaved" } else { "" });
    let figures = [held(0), held(STAGES - 1), percent(ran.bubble())].map(plain);
    Row::at(id, [name, inline(about)].into_iter().chain(figures))
}
