//! The state and what changes it.

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
    /// Counts the plans taken up whole, each an entry of its own in the browser's history.
    pub entries: u64,
    /// Counts the events applied. Equal revisions are equal states, so components need not compare them whole.
    pub revision: u64,
}

impl State {
    /// The state with `input`, answered.
    #[must_use]
    pub fn new(input: UserInput) -> Self {
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
            entries: 0,
            revision: 0,
        }
    }

    fn settle(&mut self) {
        // Estimating is most of the cost of an event, and most events change no input.
        if self.answered == self.input {
            return;
        }
        let (found, shown) = answer(&self.input);
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
    if !matches!(event, Event::Paint(_) | Event::Pick(_)) {
        state.refused = None;
    }
    match event {
        Event::Edit(text) => {
            // Before the text is replaced, since the step is told from the difference between the two.
            state.steps.record_typing(&state.input, &text);
            state.input = state.input.with_text(&text);
        }
        Event::Settle => state.settle(),
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
mod tests {
    use super::*;

    fn after(events: Vec<Event>) -> State {
        events.into_iter().fold(State::default(), apply)
    }

    #[test]
    fn the_example_is_a_plan_of_sixteen() {
        let state = State::default();
        let plan = state.shown.map(|shown| shown.plan.layout().world_size);
        assert_eq!(plan, Some(16), "{:?}", state.answer.resolution.diagnostics);
    }

    #[test]
    fn a_text_without_a_plan_shows_no_other_plan() {
        let state = after(vec![Event::Edit("prose, not a script".into())]);
        assert!(state.shown.is_some() && !state.is_settled(), "the answer waits for the pause");
        let state = apply(state, Event::Settle);
        assert!(state.shown.is_none() && state.is_settled());
        let state = apply(state, Event::Open(Box::new(UserInput::from_text(EXAMPLE))));
        assert!(state.shown.is_some());
    }

    #[test]
    fn a_refused_value_leaves_the_plan_and_says_why() {
        let before = State::default();
        let state = apply(before.clone(), set("tensor_model_parallel_size", "16"));
        let refused = state.refused.clone().expect("TP 16 × PP 2 needs 32 GPUs");
        assert_eq!(refused.values, [("tensor_model_parallel_size".to_owned(), "16".to_owned())]);
        assert!(refused.reason.contains("32"), "{}", refused.reason);
        assert_eq!((&state.input, &state.shown), (&before.input, &before.shown));
        assert!(!state.steps.can_undo(), "nothing happened that could be undone");
        let state = apply(state, set("num_nodes", "4"));
        assert!(state.refused.is_none() && world(&state) == Some(32));
    }

    #[test]
    fn an_answered_question_is_open_no_more() {
        let script = "deepspeed --num_gpus 8 finetune.py --deepspeed ds/my_zero.json --model_name_or_path \
            meta-llama/Llama-3.1-8B-Instruct --per_device_train_batch_size 1 --max_seq_length 4096 --bf16";
        let asked = |state: &State| -> Vec<String> {
            state.answer.resolution.questions.iter().map(|question| question.name.clone()).collect()
        };
        let state = after(vec![Event::Open(Box::new(UserInput::from_text(script)))]);
        assert_eq!((asked(&state), state.shown.is_some()), (vec!["zero_stage".to_owned()], false));
        let answered = apply(state.clone(), set("zero_stage", "3"));
        assert_eq!((asked(&answered), answered.shown.is_some()), (vec![], true));
        let unreadable = apply(state, set("zero_stage", "three"));
        assert_eq!(asked(&unreadable), ["zero_stage"], "what cannot be read answers nothing");
    }

    #[test]
    fn layouts_of_a_list_are_tried_on_the_plan_that_it_was_searched_from() {
        let first = State::default();
        let tried = |state: State, name: &str, value: &str| {
            let values = vec![(name.to_owned(), value.to_owned())];
            apply(state, Event::TryOn(Box::new(first.input.clone()), values))
        };
        let one = tried(first.clone(), "tensor_model_parallel_size", "4");
        let two = tried(one, "micro_batch_size", "2");
        let shown = two.shown.clone().expect("a plan");
        assert_eq!(shown.plan.layout().tensor, 2, "nothing of the first is left");
        assert_eq!(shown.plan.recipe().micro_batch_size, 2);
        let back = apply(apply(two, Event::Undo), Event::Undo);
        assert_eq!(back.input, first.input);
    }

    #[test]
    fn a_value_given_by_hand_counts_until_taken_back() {
        let set = Event::Set { name: "num_nodes".into(), value: "4".into() };
        let state = after(vec![set, Event::Pick(Some(Rank::new(20)))]);
        assert_eq!(state.shown.as_ref().map(|shown| shown.plan.layout().world_size), Some(32));
        assert_eq!(state.picked, Some(Rank::new(20)));
        let state = apply(state, Event::Unset("num_nodes".into()));
        assert_eq!(state.shown.as_ref().map(|shown| shown.plan.layout().world_size), Some(16));
        assert_eq!(state.picked, None, "it is no more");
    }

    fn set(name: &str, value: &str) -> Event {
        Event::Set { name: name.into(), value: value.into() }
    }

    fn world(state: &State) -> Option<u64> {
        state.shown.as_ref().map(|shown| shown.plan.layout().world_size)
    }

    #[test]
    fn a_text_pasted_over_another_is_no_change_of_it() {
        let own = EXAMPLE.replace("--num-layers 24", "--num-layers 12");
        let state = after(vec![Event::Edit(own), Event::Settle]);
        assert!(!state.is_another, "one value is a change");
        let config = "{\"model_type\": \"llama\"}".to_owned();
        let state = apply(apply(state, Event::Edit(config)), Event::Settle);
        assert!(state.is_another);
        let state = apply(state, Event::Undo);
        assert!(state.is_another, "the way back leads to another text too");
        assert!(!apply(state, set("num_nodes", "4")).is_another);
    }

    #[test]
    fn every_change_can_be_undone_and_done_again() {
        let input = UserInput::of_settings(vec![("num_layers".into(), "2".into())]);
        let events =
            vec![set("num_nodes", "4"), Event::Edit("x".into()), Event::Settle, Event::Open(Box::new(input))];
        let state = after(events);
        let last = state.input.clone();
        let state = apply(apply(state, Event::Undo), Event::Undo);
        assert_eq!(world(&state), Some(32));
        let state = apply(apply(state, Event::Undo), Event::Undo);
        assert_eq!((world(&state), state.steps.can_undo()), (Some(16), false));
        let state = (0..4).fold(state, |state, _| apply(state, Event::Redo));
        assert_eq!(state.input, last);
    }

    #[test]
    fn a_link_is_taken_up_and_a_broken_one_leaves_everything() {
        let state = after(vec![Event::Follow("#z1:AAAA".into())]);
        assert!(state.broken_link.is_some());
        assert_eq!(&*state.input.text, EXAMPLE);
        let state = apply(
            state,
            Event::Follow(
                "#/1?layers=2&hidden=64&heads=4&seq=32&mbs=1&nodes=1&gpus_per_node=8&colour=red&bf16".into(),
            ),
        );
        assert_eq!(world(&state), Some(8), "{:?}", state.answer.resolution.diagnostics);
        assert!(state.broken_link.is_none() && state.input.is_settings_alone());
        let told = |code| state.answer.resolution.diagnostics.iter().any(|said| said.code.name() == code);
        assert!(told("unknown-setting"), "a newer version's setting is told");
        let state = apply(state, Event::Follow("#memory".into()));
        assert!(state.input.is_settings_alone(), "an anchor is no link");
        assert_eq!(&*apply(state, Event::Undo).input.text, EXAMPLE);
    }

    #[test]
    fn a_pinned_plan_stays_and_changes_places() {
        let state = after(vec![Event::Pin, set("num_nodes", "4")]);
        let pinned =
            |state: &State| state.pinned.as_ref().map(|pinned| pinned.shown.plan.layout().world_size);
        assert_eq!((pinned(&state), world(&state)), (Some(16), Some(32)));
        let state = apply(state, Event::Swap);
        assert_eq!((pinned(&state), world(&state)), (Some(32), Some(16)));
        let prose = apply(apply(state.clone(), Event::Edit("prose".into())), Event::Swap);
        assert_eq!((pinned(&prose), world(&prose)), (Some(32), None), "nothing to change places with");
        assert_eq!(pinned(&apply(prose, Event::Pin)), Some(32), "nor to hold in its place");
        assert_eq!(pinned(&apply(state, Event::Unpin)), None);
    }
}
