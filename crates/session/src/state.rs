//! The state and what changes it.

use super::answer::figures;
use super::event::{Event, Pinned, Refused};
use super::map::Colour;
use super::{Answer, EXAMPLE, PtrEq, Shown, Steps, UserInput, answer};
use shardscope_link::{self as share, LinkError};

use shardscope_launch::Resolution;
use shardscope_topology::Rank;

/// Everything the user has entered and sees. States are values: an event produces the next one.
#[derive(Clone, Debug)]
pub struct State {
    /// The current input.
    pub input: UserInput,
    /// Answer to [`Self::answered`]; lags behind `input` while the user types.
    pub answer: PtrEq<Answer>,
    /// Input that `answer` and `shown` belong to.
    answered: UserInput,
    /// The plan of `answered` with its estimates; `None` if it does not form one.
    pub shown: Option<PtrEq<Shown>>,
    /// Whether the answer is for a different text than the previous one, so that comparing the two says nothing about
    /// a change.
    pub is_another: bool,
    /// A change of settings that would not have formed a plan, and was not applied.
    pub refused: Option<Refused>,
    /// The quantity by which the map is coloured.
    pub colour: Colour,
    /// The GPU picked on the map.
    pub picked: Option<Rank>,
    /// A pinned plan, to compare the current one with.
    pub pinned: Option<PtrEq<Pinned>>,
    /// Earlier inputs, and undone ones.
    pub steps: Steps,
    /// Why the last link could not be opened; `None` if it could, or if the user has dismissed the message.
    pub broken_link: Option<LinkError>,
    /// Whether answers come without their advice until it is requested ([`Event::Advise`]).
    pub figures_first: bool,
    /// Counts the replaced plans, each a separate entry in the browser's history.
    pub entries: u64,
    /// Counts the events applied. Equal revisions are equal states, so components need not compare them in full.
    pub revision: u64,
}

impl State {
    /// The state with `input`, answered.
    #[must_use]
    pub fn new(input: UserInput) -> Self {
        Self::answered_by(answer, input)
    }

    /// The same without advice, which comes with [`Event::Advise`].
    #[must_use]
    pub fn figures_first(input: UserInput) -> Self {
        Self { figures_first: true, ..Self::answered_by(figures, input) }
    }

    /// `input` without an answer, if another input follows at once: a link must not wait for the previous input.
    #[must_use]
    pub fn unanswered(input: UserInput) -> Self {
        let nothing = |input: &UserInput| {
            (PtrEq::new(Answer { source: input.source(), resolution: Resolution::default() }), None)
        };
        Self { figures_first: true, ..Self::answered_by(nothing, input) }
    }

    fn answered_by(answer: fn(&UserInput) -> (PtrEq<Answer>, Option<Shown>), input: UserInput) -> Self {
        let (found, shown) = answer(&input);
        Self {
            answered: input.clone(),
            input,
            answer: found,
            shown: shown.map(PtrEq::new),
            is_another: false,
            refused: None,
            colour: Colour::Stage,
            picked: None,
            pinned: None,
            steps: Steps::default(),
            broken_link: None,
            figures_first: false,
            entries: 0,
            revision: 0,
        }
    }

    fn settle(&mut self) {
        // Estimating is most of the cost of an event, and most events change no input.
        if self.answered == self.input {
            return;
        }
        // What was measured changes no answer.
        if self.answered.is_same_run(&self.input) {
            self.answered = self.input.clone();
            return;
        }
        let (found, shown) = if self.figures_first { figures(&self.input) } else { answer(&self.input) };
        // Before `answered` is updated: it is the text that the last answer belonged to.
        self.is_another = self.input.replaces(&self.answered);
        self.answered = self.input.clone();
        self.answer = found;
        // A pick survives if its rank still exists; without a plan it waits for the next one.
        if let Some(shown) = &shown {
            let world = shown.plan.layout().world_size;
            self.picked = self.picked.filter(|rank| rank.get() < world);
        }
        self.shown = shown.map(PtrEq::new);
    }

    /// The input that the answer belongs to: the input when the user last paused.
    #[must_use]
    pub fn answered(&self) -> &UserInput {
        &self.answered
    }

    /// Whether the answer is to the text as it is now.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.answered == self.input
    }
}

impl State {
    /// Replaces the current input by `input`.
    fn take(&mut self, input: UserInput) {
        // Replacing the input by itself (Restore after a reload, a link to the page itself) is not an undo step.
        if input != self.input {
            self.steps.record(&self.input);
            self.input = input;
            // Another input is another cluster: the same rank number would be an accident.
            self.picked = None;
            self.settle();
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut UserInput)) {
        let before = self.input.clone();
        change(&mut self.input);
        if before != self.input {
            // One step, however many settings it changed.
            self.steps.record(&before);
        }
        self.settle();
    }

    /// Applies `values` to settings, as `change` does, unless that turns a plan into none: then the plan stays, and
    /// the refusal says why.
    fn try_values(
        &mut self,
        from: Option<UserInput>,
        values: Vec<(String, String)>,
        change: fn(&mut UserInput, (String, String)),
    ) {
        // The whole state, because a refusal must leave no trace in steps, answer or pick; clones of it are mostly
        // shared pointers.
        let before = self.clone();
        let tried = values.clone();
        self.change(|input| {
            if let Some(from) = from {
                // What was measured meanwhile stays.
                let own = std::mem::take(&mut input.own);
                *input = UserInput { own, ..from };
            }
            values.into_iter().for_each(|one| change(input, one));
        });
        // Only if there was a settled plan: without one, an attempt that gives no plan is still progress, and its
        // questions must be visible.
        if before.shown.is_some() && before.is_settled() && self.shown.is_none() {
            let refused = Refused::new(tried, &self.answer.resolution.diagnostics);
            // The revision still advances, since the refusal itself must be drawn.
            let revision = self.revision;
            *self = Self { refused: Some(refused), revision, ..before };
        }
    }

    fn step(&mut self, step: fn(&mut Steps, &UserInput) -> Option<UserInput>) {
        if let Some(input) = step(&mut self.steps, &self.input) {
            self.input = input;
            self.settle();
        }
    }

    fn follow(&mut self, fragment: &str) {
        match share::decode_pair(fragment) {
            // An anchor (`#memory`) is not a link, and must neither replace the input nor count as broken.
            Ok((None, _)) => {}
            Ok((Some(shared), pinned)) => {
                self.broken_link = None;
                self.take(UserInput::of_shared(shared));
                // Links without a second plan unpin the pinned one: following a link shows what its sender saw.
                self.pinned = pinned.map(UserInput::of_shared).and_then(pin);
            }
            Err(error) => self.broken_link = Some(error),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(UserInput::from_text(EXAMPLE))
    }
}

/// The state after `event`.
#[must_use]
pub fn apply(mut state: State, event: Event) -> State {
    if matches!(event, Event::Settle) && state.answered == state.input {
        // The answer already exists; nothing needs to be redrawn.
        return state;
    }
    state.revision += 1;
    // Looking around does not dismiss the message about a refused value; every other event does.
    if !matches!(event, Event::Paint(_) | Event::Pick(_) | Event::Advise) {
        state.refused = None;
    }
    match event {
        Event::Edit(text) => {
            // Before the text is replaced, since the step is determined from the difference between the two.
            state.steps.record_typing(&state.input, &text);
            state.input = state.input.with_text(&text);
        }
        Event::Settle => state.settle(),
        Event::Advise => {
            if std::mem::take(&mut state.figures_first) {
                state.shown = state.shown.map(|shown| PtrEq::new(shown.with_advice()));
            }
        }
        Event::Open(input) => {
            state.entries += 1;
            // Counted even if the input is the same, since the browser's history follows openings.
            state.take(*input);
        }
        Event::Start(input) => {
            // Amending a settings-only input stays one history entry; otherwise each turn of a knob in the form would
            // add one.
            state.entries += u64::from(!state.input.is_settings_alone());
            let own = state.input.own.clone();
            state.take(UserInput { own, ..*input });
        }
        Event::Follow(fragment) => state.follow(&fragment),
        Event::Restore(kept) => {
            state.take(kept.input);
            state.pinned = kept.pinned.and_then(pin);
        }
        Event::Own(own) => state.change(|input| input.own = *own),
        Event::Measured(log, found) => {
            // No step of its own: the figures follow from the text, which may have been replaced meanwhile.
            if state.input.own.log == log {
                state.input.own.read = Some(found.into());
                state.settle();
            }
        }
        Event::Undo => state.step(Steps::undo),
        Event::Redo => state.step(Steps::redo),
        Event::Pin => {
            // What is pinned is a text with its own answer.
            state.settle();
            let input = state.input.clone();
            let held = state.shown.clone().map(|shown| PtrEq::new(Pinned { input, shown }));
            state.pinned = held.or(state.pinned);
        }
        Event::Unpin => state.pinned = None,
        Event::Hold(pinned) => state.pinned = Some(pinned),
        Event::Swap => {
            state.settle();
            // Without a current plan there is nothing to swap with, and what is pinned stays.
            if let (Some(pinned), Some(shown)) = (state.pinned.clone(), state.shown.clone()) {
                let input = state.input.clone();
                state.take(pinned.input.clone());
                state.pinned = Some(PtrEq::new(Pinned { input, shown }));
            }
        }
        Event::Dismiss => state.broken_link = None,
        Event::Try(values) => state.try_values(None, values, UserInput::put),
        Event::TryOn(input, values) => state.try_values(Some(*input), values, UserInput::put),
        Event::Set { name, value } => {
            state.try_values(None, vec![(name, value)], |input, (name, value)| input.set(name, value))
        }
        Event::Without(name) => state.change(|input| input.go_without(&name)),
        Event::Unset(name) => state.change(|input| input.unset(&name)),
        Event::UnsetAll => state.change(UserInput::unset_all),
        Event::Paint(colour) => state.colour = colour,
        Event::Pick(picked) => state.picked = picked,
    }
    state
}

/// Estimates `input` for pinning; `None` if it does not form a plan.
fn pin(input: UserInput) -> Option<PtrEq<Pinned>> {
    // No settling and no waiting: a pinned plan is complete or absent.
    let shown = PtrEq::new(answer(&input).1?);
    Some(PtrEq::new(Pinned { input, shown }))
}

#[cfg(test)]
mod tests;
