//! The schedule of a step as a picture: what each stage does when, and how a stage's memory rises and falls.

mod alternatives;

pub use alternatives::{Alternative, alternatives};

use std::fmt::Write;

use super::Shown;
use crate::quantity::{Bytes, Quantity, Seconds, decimal};
use crate::schedule::{Action, Order, Shape, Timed, timeline};

/// Events drawn at most; with more micro-batches the first ones are.
const MOST_EVENTS: u32 = 4_000;
/// Width of the picture, in its own units.
pub const WIDTH: u32 = 1_000;
/// Height of a stage's lane, in its own units.
pub const LANE: u32 = 20;
/// Height of the memory curve, in its own units.
pub const CURVE: u32 = 100;
/// Least part of the width in which a number can be read.
const READABLE: f64 = 0.018;

/// The picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Stages, one lane each.
    pub lanes: u32,
    /// One path for each kind of work.
    pub paths: Vec<(Work, String)>,
    /// Numbers of micro-batches, where there is room.
    pub numbers: Vec<Number>,
    /// Micro-batches drawn, and all there are.
    pub drawn: (u32, u32),
    /// Time of what is drawn.
    pub total: Seconds,
    /// The memory of the fullest stage over that time.
    pub curve: Curve,
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Forward.
    Forward,
    /// Backward, whole or for the input gradient alone.
    Backward,
    /// The weight gradient on its own.
    Weight,
}

impl Work {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Forward, Self::Backward, Self::Weight];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Weight => "weight gradient",
        }
    }

    /// As a class of the style sheet.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Forward => "work-forward",
            Self::Backward => "work-backward",
            Self::Weight => "work-weight",
        }
    }

    const fn of(action: Action) -> Self {
        match action {
            Action::Forward => Self::Forward,
            Action::Backward | Action::BackwardInput => Self::Backward,
            Action::WeightGradient => Self::Weight,
        }
    }
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

/// Allocated memory over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Whose.
    pub stage: u64,
    /// The area below it.
    pub area: String,
    /// What the height stands for.
    pub most: Bytes,
    /// What is held all the time, as a share of the height.
    pub held: f64,
    /// The peak with what is alive only for a moment, as a share of the height.
    pub peak: f64,
}

/// The schedule of the plan shown; nothing without a pipeline.
#[must_use]
pub fn schedule_picture(shown: &Shown) -> Option<Picture> {
    let times = &shown.report.time.schedule;
    if times.shape.stages < 2 {
        return None;
    }
    let shape = shortened(times.shape);
    let order = Order::of(shape);
    let line = timeline(&order, &times.durations);
    let total = line.total.number().max(f64::MIN_POSITIVE);
    let mut paths: Vec<(Work, String)> = Work::ALL.into_iter().map(|work| (work, String::new())).collect();
    let mut numbers = Vec::new();
    for (lane, events) in (0_u32..).zip(&line.stages) {
        for timed in events {
            let (from, to) = (timed.start.number() / total, timed.end.number() / total);
            let work = Work::of(timed.event.action);
            if let Some((_, path)) = paths.iter_mut().find(|(kind, _)| *kind == work) {
                box_path(path, from, to, lane);
            }
            if to - from > READABLE {
                numbers.push(Number { at: (from + to) / 2.0, lane, micro_batch: timed.event.micro_batch });
            }
        }
    }
    paths.retain(|(_, path)| !path.is_empty());
    let worst = shown.worst().map_or(0, |worst| worst.stage);
    Some(Picture {
        lanes: shape.stages,
        paths,
        numbers,
        drawn: (shape.micro_batches, times.shape.micro_batches),
        total: line.total,
        curve: curve(shown, worst, &order, &line.stages, total)?,
    })
}

/// The same schedule with as few micro-batches as can be drawn.
fn shortened(shape: Shape) -> Shape {
    let per_batch = shape.stages.saturating_mul(shape.chunks).saturating_mul(2).max(1);
    let group = shape.group.max(1);
    let most = (MOST_EVENTS / per_batch).max(shape.stages.saturating_mul(2)) / group * group;
    Shape { micro_batches: shape.micro_batches.min(most.max(group)), ..shape }
}

fn box_path(path: &mut String, from: f64, to: f64, lane: u32) {
    let width = f64::from(WIDTH);
    let (x, w) = (from * width, decimal((to - from) * width, 2));
    // Writing into a String cannot fail.
    let _ = write!(path, "M{} {}h{w}v{}h-{w}z", decimal(x, 2), lane * LANE + 1, LANE - 2);
}

fn curve(shown: &Shown, stage: u64, order: &Order, stages: &[Vec<Timed>], total: f64) -> Option<Curve> {
    let index = usize::try_from(stage).ok()?;
    let rank = shown.report.memory.ranks.get(index)?;
    let weights: Vec<u64> = rank.chunks.iter().map(|chunk| chunk.kept.get()).collect();
    let most = shown.report.memory.capacity.max(rank.totals.peak_allocated);
    let whole = most.number().max(1.0);
    let base = rank.totals.between_steps;
    let (width, height) = (f64::from(WIDTH), f64::from(CURVE));
    let level = |bytes: Bytes| decimal(height * (1.0 - bytes.number() / whole), 2);
    let mut area = format!("M0 {CURVE}V{}", level(base));
    let held = order.held(u32::try_from(stage).ok()?, &weights);
    for (timed, held) in stages.get(index)?.iter().zip(held) {
        let (from, to) = (timed.start.number() / total * width, timed.end.number() / total * width);
        let _ = write!(area, "H{}V{}H{}", decimal(from, 2), level(base + Bytes::new(held)), decimal(to, 2));
    }
    let _ = write!(area, "V{}H{WIDTH}V{CURVE}z", level(base));
    Some(Curve {
        stage,
        area,
        most,
        held: base.number() / whole,
        peak: rank.totals.peak_allocated.number() / whole,
    })
}
