//! Lets an order run: every stage takes its events in turn and waits for what each needs.

use super::{Action, Event, Order, Shape, StageDurations};

/// A stage's clock.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock {
    /// Next event of the stage.
    next: usize,
    /// When the stage is free again.
    free: f64,
    /// When its last work ended.
    pub(super) end: f64,
    /// When it first began.
    pub(super) first: f64,
    /// Time spent at work.
    pub(super) busy: f64,
}

/// Where a result comes from: its place among the results, and how long it is under way.
#[derive(Clone, Copy)]
struct Source {
    /// Index of the part's first micro-batch.
    row: usize,
    delay: f64,
}

/// What is fixed about one chunk of one stage.
#[derive(Clone, Copy)]
struct Desk {
    row: usize,
    /// None for the model's first part.
    input: Option<Source>,
    /// None for the model's last part, whose gradient follows from its own forward.
    gradient: Option<Source>,
    /// Time of each action.
    work: [f64; 4],
    /// Time the stage stands still to send the result of each action.
    sending: [f64; 4],
}

impl Desk {
    fn of(shape: &Shape, durations: &StageDurations, stage: u32, chunk: u32) -> Self {
        let batches = shape.micro_batches as usize;
        let part = shape.part(stage, chunk);
        let from = |part: u32| Source {
            row: part as usize * batches,
            delay: durations.between(shape.holder(part, chunk).0, stage),
        };
        let input = part.checked_sub(1).map(from);
        let gradient = Some(part + 1).filter(|next| *next < shape.parts()).map(from);
        let time = durations.chunks.get(stage as usize).and_then(|chunks| chunks.get(chunk as usize));
        let time = time.copied().unwrap_or_default();
        let [forward, backward, weight] = [time.forward, time.backward, time.weight].map(|time| time.get());
        let still = |source: Option<Source>| match source {
            Some(source) if durations.blocking => source.delay,
            _ => 0.0,
        };
        Self {
            row: part as usize * batches,
            input,
            gradient,
            work: [forward, backward + weight, backward, weight],
            // A forward goes on to where the gradient comes from, and the other way round.
            sending: [still(gradient), still(input), still(input), 0.0],
        }
    }
}

/// When results are ready, by part and micro-batch; negative: not yet.
struct Ready {
    forward: Vec<f64>,
    backward: Vec<f64>,
}

const NOT_YET: f64 = -1.0;

impl Ready {
    fn of(shape: &Shape) -> Self {
        let cells = shape.micro_batches as usize * shape.parts() as usize;
        Self { forward: vec![NOT_YET; cells], backward: vec![NOT_YET; cells] }
    }

    /// Notes that the result of `event` is ready at `end`.
    fn set(&mut self, desk: &Desk, event: Event, end: f64) {
        let list = match event.action {
            Action::Forward => &mut self.forward,
            Action::Backward | Action::BackwardInput => &mut self.backward,
            Action::WeightGradient => return,
        };
        if let Some(slot) = list.get_mut(desk.row + event.micro_batch as usize) {
            *slot = end;
        }
    }

    /// When `event` has all it needs; negative while that is not known.
    fn needs(&self, desk: &Desk, event: Event) -> f64 {
        let batch = event.micro_batch as usize;
        let at = |list: &[f64], row: usize, delay: f64| {
            let ready = list.get(row + batch).copied().unwrap_or(0.0);
            if ready < 0.0 { NOT_YET } else { ready + delay }
        };
        match (event.action, desk.input, desk.gradient) {
            (Action::Forward, None, _) => 0.0,
            (Action::Forward, Some(source), _) => at(&self.forward, source.row, source.delay),
            (Action::WeightGradient, _, _) => at(&self.backward, desk.row, 0.0),
            (_, _, Some(source)) => at(&self.backward, source.row, source.delay),
            (_, _, None) => at(&self.forward, desk.row, 0.0),
        }
    }
}

/// Hears of each event's stage, start and end.
pub(super) type Note<'n> = &'n mut dyn FnMut(usize, Event, f64, f64);

/// Runs `order`, telling `note` each event's stage, start and end; gives the stages' clocks.
pub(super) fn run(order: &Order, durations: &StageDurations, mut note: Option<Note<'_>>) -> Vec<Clock> {
    let shape = order.shape();
    let mut ready = Ready::of(shape);
    let (mut clocks, mut desks): (Vec<Clock>, Vec<Vec<Desk>>) = (Vec::new(), Vec::new());
    for stage in 0..shape.stages {
        let mut of_stage = Vec::with_capacity(shape.chunks as usize);
        for chunk in 0..shape.chunks {
            of_stage.push(Desk::of(shape, durations, stage, chunk));
        }
        desks.push(of_stage);
        clocks.push(Clock::default());
    }
    let mut moved = true;
    while moved {
        moved = false;
        for ((stage, clock), desks) in (0_u32..).zip(&mut clocks).zip(&desks) {
            let events = order.stage(stage);
            while clock.step(events, desks, &mut ready, stage as usize, &mut note) {
                moved = true;
            }
        }
    }
    clocks
}

impl Clock {
    /// Does the next event, or the next two where they run as one, if they have all they need.
    fn step(
        &mut self,
        events: &[Event],
        desks: &[Desk],
        ready: &mut Ready,
        stage: usize,
        note: &mut Option<Note<'_>>,
    ) -> bool {
        let Some(&event) = events.get(self.next) else { return false };
        let Some(desk) = desks.get(event.chunk as usize) else { return false };
        let mut needed = ready.needs(desk, event);
        let second = if event.joined { events.get(self.next + 1).copied() } else { None };
        let second = second.and_then(|event| Some((event, desks.get(event.chunk as usize)?)));
        if let Some((event, desk)) = second {
            let other = ready.needs(desk, event);
            needed = if needed < 0.0 || other < 0.0 { NOT_YET } else { needed.max(other) };
        }
        if needed < 0.0 {
            return false;
        }
        let start = self.free.max(needed);
        let between = start + desk.work[event.action as usize];
        let end = second.map_or(between, |(event, desk)| between + desk.work[event.action as usize]);
        if let Some(note) = note {
            note(stage, event, start, between);
        }
        ready.set(desk, event, end);
        self.free = end + desk.sending[event.action as usize];
        if let Some((event, desk)) = second {
            if let Some(note) = note {
                note(stage, event, between, end);
            }
            ready.set(desk, event, end);
            self.free += desk.sending[event.action as usize];
        }
        if self.next == 0 {
            self.first = start;
        }
        self.next += if second.is_some() { 2 } else { 1 };
        self.busy += end - start;
        self.end = end;
        true
    }
}
