//! A slow, independent simulation of a pipeline: sweeps over all stages until nothing changes. The reference with which
//! the engine and its speed are compared.

use shardscope::plan::PipelineSchedule;
use shardscope::schedule::{Action, Event, Order, Shape, StageDurations};

/// Start and end of every event, by stage, in order. Unit: second.
pub(crate) type Times = Vec<Vec<(f64, f64)>>;

/// The recorded results: by direction, part of the model and micro-batch, the time at which they were ready.
struct Done(Vec<Option<f64>>, u32, u32);

impl Done {
    fn at(&mut self, back: bool, part: u32, micro_batch: u32) -> &mut Option<f64> {
        let row = u32::from(back) * self.1 + part;
        &mut self.0[row as usize * self.2 as usize + micro_batch as usize]
    }
}

/// The part of the model held by a chunk, counted from the input.
fn part_of(shape: &Shape, stage: u32, chunk: u32) -> u32 {
    use PipelineSchedule::*;
    let p = shape.stages;
    match shape.kind {
        OneForwardOneBackward | GPipe | ZeroBubbleH1 | ZeroBubbleH2 => chunk * p + stage,
        DualPipe => [stage, p - 1 - stage][chunk as usize],
        ZeroBubbleV | VHalf | VMin | OneForwardOneBackwardV | DualPipeV => {
            [stage, 2 * p - 1 - stage][chunk as usize]
        }
    }
}

/// The stage that holds `part` in the copy of the model to which `chunk` belongs.
fn stage_of(shape: &Shape, part: u32, chunk: u32) -> u32 {
    (0..shape.stages)
        .find(|stage| match shape.kind {
            PipelineSchedule::DualPipe => part_of(shape, *stage, chunk) == part,
            _ => (0..shape.chunks).any(|chunk| part_of(shape, *stage, chunk) == part),
        })
        .expect("a stage for every part")
}

fn send(durations: &StageDurations, from: u32, to: u32) -> f64 {
    if from == to {
        return 0.0;
    }
    // A message between the two ends uses the link that closes the ring.
    let link = if from.abs_diff(to) == 1 { from.min(to) } else { from.max(to) };
    durations.sends[link as usize].get()
}

/// The times of all events.
pub(crate) fn sweep(order: &Order, durations: &StageDurations) -> Times {
    let shape = *order.shape();
    let parts =
        if shape.kind == PipelineSchedule::DualPipe { shape.stages } else { shape.stages * shape.chunks };
    let mut done =
        Done(vec![None; 2 * parts as usize * shape.micro_batches as usize], parts, shape.micro_batches);
    let holders: Vec<[u32; 2]> = (0..parts)
        .map(|part| [0, 1].map(|chunk| stage_of(&shape, part, chunk.min(shape.chunks - 1))))
        .collect();
    let holder = |part: u32, chunk: u32| holders[part as usize][usize::from(chunk > 0)];
    let stages: Vec<Vec<Event>> = (0..shape.stages).map(|stage| order.events(stage).collect()).collect();
    let mut times: Times = stages.iter().map(|events| Vec::with_capacity(events.len())).collect();
    let mut free = vec![0.0_f64; shape.stages as usize];
    loop {
        let mut moved = false;
        for stage in 0..shape.stages {
            let events = &stages[stage as usize];
            loop {
                let times = &mut times[stage as usize];
                let Some(first) = events.get(times.len()) else { break };
                let together = &events[times.len()..times.len() + 1 + usize::from(first.joined)];
                let mut needed = Some(free[stage as usize]);
                for event in together {
                    let part = part_of(&shape, stage, event.chunk);
                    let last = part + 1 == parts;
                    let ready = match event.action {
                        Action::Forward if part == 0 => Some(0.0),
                        Action::Forward => done
                            .at(false, part - 1, event.micro_batch)
                            .map(|at| at + send(durations, holder(part - 1, event.chunk), stage)),
                        Action::WeightGradient => *done.at(true, part, event.micro_batch),
                        _ if last => *done.at(false, part, event.micro_batch),
                        _ => done
                            .at(true, part + 1, event.micro_batch)
                            .map(|at| at + send(durations, holder(part + 1, event.chunk), stage)),
                    };
                    needed = needed.zip(ready).map(|(one, other)| one.max(other));
                }
                let Some(start) = needed else { break };
                moved = true;
                let mut at = start;
                for event in together {
                    let chunk = durations.chunks[stage as usize][event.chunk as usize];
                    let takes = match event.action {
                        Action::Forward => chunk.forward.get(),
                        Action::Backward => chunk.backward.get() + chunk.weight.get(),
                        Action::BackwardInput => chunk.backward.get(),
                        Action::WeightGradient => chunk.weight.get(),
                    };
                    times.push((at, at + takes));
                    at += takes;
                }
                free[stage as usize] = at;
                for event in together {
                    let part = part_of(&shape, stage, event.chunk);
                    let (back, next) = match event.action {
                        Action::WeightGradient => continue,
                        Action::Forward => (false, Some(part + 1).filter(|next| *next < parts)),
                        _ => (true, part.checked_sub(1)),
                    };
                    *done.at(back, part, event.micro_batch) = Some(at);
                    if durations.blocking
                        && let Some(next) = next
                    {
                        free[stage as usize] += send(durations, stage, holder(next, event.chunk));
                    }
                }
            }
        }
        if !moved {
            return times;
        }
    }
}
