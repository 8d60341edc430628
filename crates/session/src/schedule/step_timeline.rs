//! A step laid out once, to be viewed through windows.

use super::{CURVE, LANE, Viewport, WIDTH, Work};
use crate::Shown;
use shardscope_estimate::time::ScheduleTimes;
use shardscope_schedule::{Action, Order, Shape, Timed, Timeline, timeline};
use shardscope_units::{Bytes, Quantity, Seconds, decimal};

/// Events laid out at most, 64 stages with 512 micro-batches among them; of a longer step, the first ones.
const MOST_EVENTS: u32 = 200_000;
/// Maximum number of boxes drawn; if a window has more, its lanes are sampled.
const MOST_BOXES: usize = 6_000;
/// Minimum fraction of the width for which the end of a step is drawn.
const LEAST_END: f64 = 1e-4;
/// Minimum fraction of the width in which a number is readable.
const READABLE: f64 = 0.018;

/// A step.
#[derive(Clone, Debug)]
pub struct StepTimeline {
    order: Order,
    line: Timeline,
    /// Micro-batches laid out, and all there are.
    pub micro_batches: (u32, u32),
}

/// The part of it that is visible through a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// One path for each kind of work.
    pub paths: Vec<(Work, String)>,
    /// Numbers of micro-batches, if there is room.
    pub numbers: Vec<Number>,
}

/// The number of a micro-batch in its piece of a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Its middle, as a share of the width.
    pub at: f64,
    /// Its lane.
    pub lane: u32,
    /// The number, from 0.
    pub micro_batch: u32,
}

/// Work of a stage at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Running {
    /// The kind of work.
    pub work: Work,
    /// Its micro-batch, from 0.
    pub micro_batch: u32,
    /// Its model chunk, from 0.
    pub chunk: u32,
    /// Model chunks of a rank.
    pub chunks: u32,
    /// Duration.
    pub takes: Seconds,
}

/// Allocated memory over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The area below it.
    pub area: String,
    /// What the height represents.
    pub most: Bytes,
    /// What is held all the time, as a share of the height.
    pub held: f64,
    /// The peak including temporaries, as a fraction of the height.
    pub peak: f64,
}

impl StepTimeline {
    /// The step of the plan shown.
    #[must_use]
    pub fn new(shown: &Shown) -> Self {
        Self::of_times(&shown.report.time.schedule).until(shown.report.time.step)
    }

    /// The same with what follows the pipeline (exposed gradient reduction, the optimizer) until the end of the step,
    /// if all of its micro-batches are laid out.
    #[must_use]
    pub fn until(mut self, step: Seconds) -> Self {
        // Only for a full step: after the first of many micro-batches there is no end of the step to draw.
        if self.is_whole() && step.get() > self.line.total.get() {
            self.line.total = step;
        }
        self
    }

    /// Whether every micro-batch is laid out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.micro_batches.0 >= self.micro_batches.1
    }

    /// When the pipeline has drained, as a fraction of the time.
    #[must_use]
    pub fn empty_from(&self) -> f64 {
        // Not the last event of the last stage: under 1F1B stage 0 finishes last, under mirrored schedules any may.
        let last = self.line.stages.iter().flatten().map(|timed| self.share(timed.end));
        last.fold(0.0, f64::max)
    }

    /// The step of a schedule with its durations.
    #[must_use]
    pub fn of_times(times: &ScheduleTimes) -> Self {
        let shape = shortened(times.shape);
        let order = Order::new(shape);
        // Durations are those of the whole step, so a shortened one begins just as the whole does.
        let line = timeline(&order, &times.durations);
        Self { order, line, micro_batches: (shape.micro_batches, times.shape.micro_batches) }
    }

    /// Stages, one lane each.
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.order.shape().stages
    }

    /// Duration of what is laid out.
    #[must_use]
    pub fn total(&self) -> Seconds {
        self.line.total
    }

    /// When the first backward pass begins and when the last forward pass ends, as shares of the time: before is
    /// warm-up, after is cool-down.
    #[must_use]
    pub fn phases(&self) -> (f64, f64) {
        let (mut first, mut last) = (f64::MAX, 0.0_f64);
        for timed in self.line.stages.iter().flatten() {
            match timed.event.action {
                Action::Forward => last = last.max(self.share(timed.end)),
                // Weight gradients are backward work too: a stage that only has these left is in cool-down.
                _ => first = first.min(self.share(timed.start)),
            }
        }
        // A step without backward passes (evaluation) has no cool-down to mark.
        (first.min(1.0), last)
    }

    /// The kinds of work that there are in the step.
    #[must_use]
    pub fn works(&self) -> Vec<Work> {
        let has = |work: &Work| {
            self.line.stages.iter().flatten().any(|timed| Work::from_action(timed.event.action) == *work)
        };
        let ends = self.empty_from() < 1.0 - LEAST_END;
        Work::ALL.into_iter().filter(|work| has(work) || ends && *work == Work::End).collect()
    }

    /// What `stage` does at a moment, a share of the time; `None` while it waits.
    #[must_use]
    pub fn running(&self, stage: u32, moment: f64) -> Option<Running> {
        let lane = self.line.stages.get(usize::try_from(stage).ok()?)?;
        // Events of a lane are in order and do not overlap, so the ends are sorted.
        let next = lane.partition_point(|timed| self.share(timed.end) <= moment);
        let timed = lane.get(next).filter(|timed| self.share(timed.start) <= moment)?;
        Some(Running {
            work: Work::from_action(timed.event.action),
            micro_batch: timed.event.micro_batch,
            chunk: timed.event.chunk,
            chunks: self.order.shape().chunks,
            takes: Seconds::new(timed.end.get() - timed.start.get()),
        })
    }

    /// What is visible through `window`.
    #[must_use]
    pub fn picture(&self, window: Viewport) -> Picture {
        let seen: Vec<&[Timed]> = self.line.stages.iter().map(|lane| self.inside(lane, window)).collect();
        // Over all lanes: what matters for the browser is the total number of boxes.
        let sampled = seen.iter().map(|lane| lane.len()).sum::<usize>() > MOST_BOXES;
        let mut picture =
            Picture { paths: Work::ALL.map(|work| (work, String::new())).to_vec(), numbers: Vec::new() };
        // The end may be left of the window, where its box begins at the window's edge.
        let end = window.place(self.empty_from()).max(0.0);
        for (lane, events) in (0_u32..).zip(seen) {
            if end < 1.0 - LEAST_END {
                picture.add(Work::End, end, window.place(1.0).min(1.0), lane);
            }
            if sampled {
                self.sample(&mut picture, window, lane, events);
            } else {
                self.draw(&mut picture, window, lane, events);
            }
        }
        picture
    }

    /// The memory of a GPU of `stage` over `window`.
    #[must_use]
    pub fn curve(&self, shown: &Shown, stage: usize, window: Viewport) -> Option<Curve> {
        let rank = shown.report.memory.ranks.get(stage)?;
        let most = shown.report.memory.capacity.max(rank.totals.peak_allocated);
        // A device without stated memory and a model without weights would divide by zero.
        let whole = most.number().max(1.0);
        let base = rank.totals.between_steps.number() / whole;
        let mut area = format!("M0 {CURVE}");
        let mut point = |at: f64, held: f64| {
            let (x, y) = (at * f64::from(WIDTH), f64::from(CURVE) * (1.0 - base - held / whole));
            for text in ["L", &decimal(x, 2), " ", &decimal(y, 2)] {
                area.push_str(text);
            }
        };
        let levels =
            // Per chunk: with interleaving each chunk of a rank saves a different number of bytes per micro-batch.
            self.levels(stage, &rank.chunks.iter().map(|chunk| chunk.kept.get()).collect::<Vec<_>>());
        let (mut at, mut level) = (0.0, 0.0);
        for (start, end, from, to) in levels {
            let [start, end] = [start, end].map(|moment| window.place(moment));
            // Of what is left of the window, only the level at the edge counts.
            if end <= 0.0 {
                level = to;
                continue;
            }
            if start >= 1.0 {
                break;
            }
            // An event of no time changes the level at once.
            let part =
                |at: f64| if end > start { from + (to - from) * (at - start) / (end - start) } else { to };
            // What is held stays until the next event begins.
            point(at, if start > at { level } else { part(at) });
            point(start.max(at), part(start.max(at)));
            at = end.min(1.0);
            level = part(at);
        }
        point(at, level);
        point(1.0, level);
        area.push_str(&format!("L{WIDTH} {CURVE}z"));
        Some(Curve { area, most, held: base, peak: rank.totals.peak_allocated.number() / whole })
    }

    /// Each event of a stage with its start and end and the bytes held at each: a forward pass adds what its
    /// micro-batch saves, and the pass that frees it removes it.
    fn levels(&self, stage: usize, weights: &[u64]) -> Vec<(f64, f64, f64, f64)> {
        let events = self.line.stages.get(stage).map_or(&[][..], Vec::as_slice);
        let held = self.order.held(u32::try_from(stage).unwrap_or(u32::MAX), weights);
        let level = |(timed, held): (&Timed, u64)| {
            // A chunk that is not listed saves nothing, so its passes do not change the level.
            let weight = weights.get(timed.event.chunk as usize).copied().unwrap_or(0);
            // `held` counts the event's own micro-batch, and rounding must not take the level below zero.
            let without = held.saturating_sub(weight);
            let (from, to) = match timed.event.action {
                Action::Forward => (without, held),
                action if action.releases() => (held, without),
                _ => (held, held),
            };
            let [from, to] = [from, to].map(|bytes| Bytes::new(bytes).number());
            (self.share(timed.start), self.share(timed.end), from, to)
        };
        events.iter().zip(held).map(level).collect()
    }

    fn share(&self, time: Seconds) -> f64 {
        // A step without time has no shares; the tiniest divisor keeps them finite.
        time.number() / self.line.total.number().max(f64::MIN_POSITIVE)
    }

    /// The events of a lane that reach into the window.
    fn inside<'a>(&self, lane: &'a [Timed], window: Viewport) -> &'a [Timed] {
        // Both by bisection: a window into 200,000 events is drawn at every move of the pointer.
        let first = lane.partition_point(|timed| window.place(self.share(timed.end)) <= 0.0);
        let last = lane.partition_point(|timed| window.place(self.share(timed.start)) < 1.0);
        lane.get(first..last).unwrap_or(&[])
    }

    fn draw(&self, picture: &mut Picture, window: Viewport, lane: u32, events: &[Timed]) {
        for timed in events {
            let from = window.place(self.share(timed.start)).max(0.0);
            let to = window.place(self.share(timed.end)).min(1.0);
            picture.add(Work::from_action(timed.event.action), from, to, lane);
            if to - from > READABLE {
                let micro_batch = timed.event.micro_batch;
                picture.numbers.push(Number { at: (from + to) / 2.0, lane, micro_batch });
            }
        }
    }

    /// Samples what the lane does in the middle of as many columns as can be drawn.
    fn sample(&self, picture: &mut Picture, window: Viewport, lane: u32, events: &[Timed]) {
        // As many columns in each lane as keep the total number of boxes drawable.
        let columns = MOST_BOXES / self.line.stages.len().max(1);
        let place = |column: usize| column as f64 / columns as f64;
        let mut rest = events.iter().peekable();
        let mut run: Option<(Work, usize)> = None;
        for column in 0..=columns {
            // The middle of a column decides, so that a short bubble between two boxes is as likely seen as hidden.
            let middle = place(column) + 0.5 / columns as f64;
            while rest.next_if(|timed| window.place(self.share(timed.end)) <= middle).is_some() {}
            let now = rest.peek().filter(|timed| window.place(self.share(timed.start)) <= middle);
            // One column past the end, without work, closes the run that reaches the edge.
            let work = now.filter(|_| column < columns).map(|timed| Work::from_action(timed.event.action));
            match run {
                // Equal neighbours are one box: otherwise sampled lanes would be drawn column by column.
                Some((kind, _)) if Some(kind) == work => {}
                _ => {
                    if let Some((kind, since)) = run {
                        picture.add(kind, place(since), place(column), lane);
                    }
                    run = work.map(|work| (work, column));
                }
            }
        }
    }
}

impl Picture {
    fn add(&mut self, work: Work, from: f64, to: f64, lane: u32) {
        let Some((_, path)) = self.paths.iter_mut().find(|(kind, _)| *kind == work) else { return };
        let width = f64::from(WIDTH);
        let (x, w) = (decimal(from * width, 2), decimal((to - from) * width, 2));
        // One unit free above and below, between lanes.
        let (y, h) = ((lane * LANE + 1).to_string(), (LANE - 2).to_string());
        for text in ["M", &x, " ", &y, "h", &w, "v", &h, "h-", &w, "z"] {
            path.push_str(text);
        }
    }
}

/// The same schedule with as many micro-batches as can be laid out.
fn shortened(shape: Shape) -> Shape {
    // Three events per micro-batch and chunk at most: forward, input gradient, weight gradient.
    let per_batch = shape.stages.saturating_mul(shape.chunks).saturating_mul(3).max(1);
    let (group, most) = (shape.group.max(1), (MOST_EVENTS / per_batch).max(1));
    // Half a group of an interleaved schedule would run in an order that does not occur in the full step. Use whole
    // groups if there is room for one.
    let most = if most > group { most / group * group } else { most };
    Shape { micro_batches: shape.micro_batches.min(most), ..shape }
}
