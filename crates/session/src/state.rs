//! The state and what changes it.

use super::answer::figures;
use super::event::{Event, Pinned, Refused};
use super::map::Colour;
use super::{Answer, EXAMPLE, PtrEq, Shown, Steps, UserInput, answer};
use shardscope_link::{self as share, LinkError};

use shardscope_topology::Rank;

/// Everything the reader has in hand and sees. Whole states are values: an event makes the next one.
#[derive(Clone, Debug)]
pub struct State {
    /// What they gave.
    pub input: UserInput,
    /// Answer to [`Self::answered`]; behind `input` while the reader types.
    pub answer: PtrEq<Answer>,
    /// Input that `answer` and `shown` belong to.
    answered: UserInput,
    /// The plan of `answered` with its estimates; `None` where that makes none.
    pub shown: Option<PtrEq<Shown>>,
    /// Whether the answer is to another text than the one before, so that comparing the two says nothing of a change.
    pub is_another: bool,
    /// A change of settings that would have made no plan, and was not taken.
    pub refused: Option<Refused>,
    /// Quantity that the map is coloured by.
    pub colour: Colour,
    /// The GPU picked on the map.
    pub picked: Option<Rank>,
    /// A plan held beside the one in hand, to be compared with it.
    pub pinned: Option<PtrEq<Pinned>>,
    /// What was in hand before, and what was undone.
    pub steps: Steps,
    /// Why the last link could not be opened; `None` where it could, or the reader has read it.
    pub broken_link: Option<LinkError>,
    /// Whether answers come without their advice until it is asked for ([`Event::Advise`]).
    pub figures_first: bool,
    /// Counts the plans taken up whole, each an entry of its own in the browser's history.
    pub entries: u64,
    /// Counts the events applied. Equal revisions are equal states, so components need not compare them whole.
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
        let (found, shown) = if self.figures_first { figures(&self.input) } else { answer(&self.input) };
        // Before `answered` is moved on: it is the text that the last answer belonged to.
        self.is_another = self.input.replaces(&self.answered);
        self.answered = self.input.clone();
        self.answer = found;
        // A pick survives where its rank still exists; without a plan it waits for the next one.
        if let Some(shown) = &shown {
            let world = shown.plan.layout().world_size;
            self.picked = self.picked.filter(|rank| rank.get() < world);
        }
        self.shown = shown.map(PtrEq::new);
    }

    /// What the answer is to: what the reader gave when they paused last.
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
    /// Takes up `input` in the place of the one there.
    fn take(&mut self, input: UserInput) {
        // Taking up what is already there (Restore after a reload, a link to the page itself) is no step to undo.
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
            // One step, whatever number of settings it changed.
            self.steps.record(&before);
        }
        self.settle();
    }

    /// Takes `values` for settings, as `change` does, unless they make no plan where there is one: then the plan stays,
    /// and the refusal says why.
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
                *input = from;
            }
            values.into_iter().for_each(|one| change(input, one));
        });
        // Only where a settled plan was there: with no plan before, a try that makes none is progress, and its
        // questions must be seen.
        if before.shown.is_some() && before.is_settled() && self.shown.is_none() {
            let refused = Refused::new(tried, &self.answer.resolution.diagnostics);
            // The revision goes on, since the refusal itself is a change to be drawn.
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
            // An anchor (`#memory`) is no link, and must neither replace the input nor count as broken.
            Ok((None, _)) => {}
            Ok((Some(shared), pinned)) => {
                self.broken_link = None;
                self.take(UserInput::of_shared(shared));
                // Links without a second plan let go of the pinned one: whoever follows a link sees what its sender
                // saw.
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
        // The answer is there already; whoever looks need not look again.
        return state;
    }
    state.revision += 1;
    // Looking around does not make the remark about a refused value go away; every other event answers it.
    if !matches!(event, Event::Paint(_) | Event::Pick(_) | Event::Advise) {
        state.refused = None;
    }
    match event {
        Event::Edit(text) => {
            // Before the text is replaced, since the step is told from the difference between the two.
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
            // Counted even where the input is the same: opening is what the browser's history follows.
            state.take(*input);
        }
        Event::Start(input) => {
            // Amending settings alone is one entry in the history, or each turn of a knob in the form would be one.
            state.entries += u64::from(!state.input.is_settings_alone());
            state.take(*input);
        }
        Event::Follow(fragment) => state.follow(&fragment),
        Event::Restore(kept) => {
            state.take(kept.input);
            state.pinned = kept.pinned.and_then(pin);
        }
        Event::Undo => state.step(Steps::undo),
        Event::Redo => state.step(Steps::redo),
        Event::Pin => {
            // What is held is a text with its own answer.
            state.settle();
            let input = state.input.clone();
            let held = state.shown.clone().map(|shown| PtrEq::new(Pinned { input, shown }));
            state.pinned = held.or(state.pinned);
        }
        Event::Unpin => state.pinned = None,
        Event::Hold(pinned) => state.pinned = Some(pinned),
        Event::Swap => {
            state.settle();
            // Without a plan in hand there is nothing to change places with, and what is pinned stays.
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

/// Estimates `input` to be held beside another; `None` where it makes no plan.
fn pin(input: UserInput) -> Option<PtrEq<Pinned>> {
    // No settling and no wait: a pinned plan is whole or not there.
    let shown = PtrEq::new(answer(&input).1?);
    Some(PtrEq::new(Pinned { input, shown }))
}

#[cfg(test)]
mod tests;
