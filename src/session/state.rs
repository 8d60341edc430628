//! The state and what changes it.

use std::rc::Rc;

use super::map::Colour;
use super::{Answer, EXAMPLE, Held, Shown, answer};
use crate::plan::Field;
use crate::topology::Rank;

/// What the reader gave: everything that an answer follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hand {
    /// What the box holds.
    pub text: Rc<str>,
    /// Settings changed by hand, by Megatron's names.
    pub settings: Vec<(String, String)>,
    /// Answers for variables that the script leaves to its environment.
    pub environment: Vec<(String, String)>,
    /// The words after the script in its call.
    pub arguments: String,
}

/// Everything the reader has in hand and sees.
#[derive(Clone, Debug)]
pub struct State {
    /// What they gave.
    pub hand: Hand,
    /// What the engine said to it last; behind `hand` while the reader types.
    pub answer: Held<Answer>,
    /// The last plan that could be, with its estimates.
    pub shown: Option<Held<Shown>>,
    /// Whether `shown` is older than the answer, because the text as it is now makes no plan.
    pub stale: bool,
    /// What the colours of the map tell.
    pub colour: Colour,
    /// The GPU picked on the map.
    pub picked: Option<Rank>,
    /// Counts the events applied, so that equal states are told apart cheaply.
    pub revision: u64,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// The text was edited; the answer waits until the reader pauses.
    Edit(String),
    /// The reader paused.
    Settle,
    /// Another text takes the place of everything.
    Load(String),
    /// A setting or a variable gets a value by hand; an empty one takes it back.
    Set {
        /// A setting's name, or a variable's.
        name: String,
        /// Its value.
        value: String,
    },
    /// A value given by hand is forgotten.
    Unset(String),
    /// All values given by hand are forgotten.
    UnsetAll,
    /// The map is to be coloured by something else.
    Paint(Colour),
    /// A GPU was picked, or none.
    Pick(Option<Rank>),
}

impl Hand {
    /// A text and nothing changed by hand.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self { text: Rc::from(text), settings: Vec::new(), environment: Vec::new(), arguments: String::new() }
    }

    fn values(&mut self, name: &str) -> &mut Vec<(String, String)> {
        let is_setting = Field::ALL.iter().any(|field| field.name() == name);
        if is_setting { &mut self.settings } else { &mut self.environment }
    }

    fn unset(&mut self, name: &str) {
        self.values(name).retain(|(other, _)| other != name);
    }

    fn set(&mut self, name: String, value: String) {
        self.unset(&name);
        if !value.is_empty() {
            self.values(&name).push((name, value));
        }
    }

    /// Whether anything was changed by hand.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.settings.is_empty() || !self.environment.is_empty() || !self.arguments.is_empty()
    }
}

impl State {
    /// The state with `hand`, answered.
    #[must_use]
    pub fn new(hand: Hand) -> Self {
        let (found, shown) = answer(&hand);
        Self {
            hand,
            answer: found,
            shown: shown.map(Held::new),
            stale: false,
            colour: Colour::Stage,
            picked: None,
            revision: 0,
        }
    }

    fn settle(&mut self) {
        let (found, shown) = answer(&self.hand);
        self.answer = found;
        self.stale = shown.is_none() && self.shown.is_some();
        if let Some(shown) = shown {
            let world = shown.plan.layout().world_size;
            self.picked = self.picked.filter(|rank| rank.get() < world);
            self.shown = Some(Held::new(shown));
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(Hand::of(EXAMPLE))
    }
}

/// The state after `event`.
#[must_use]
pub fn apply(mut state: State, event: Event) -> State {
    state.revision += 1;
    match event {
        Event::Edit(text) => state.hand.text = Rc::from(text),
        Event::Settle => state.settle(),
        Event::Load(text) => {
            state.hand = Hand::of(&text);
            state.picked = None;
            state.settle();
        }
        Event::Set { name, value } => {
            state.hand.set(name, value);
            state.settle();
        }
        Event::Unset(name) => {
            state.hand.unset(&name);
            state.settle();
        }
        Event::UnsetAll => {
            state.hand = Hand { text: state.hand.text, ..Hand::of("") };
            state.settle();
        }
        Event::Paint(colour) => state.colour = colour,
        Event::Pick(picked) => state.picked = picked,
    }
    state
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
    fn the_last_good_plan_stays_and_is_marked_stale() {
        let state = after(vec![Event::Edit("prose, not a script".into()), Event::Settle]);
        assert!(state.stale && state.shown.is_some());
        let state = apply(state, Event::Load(EXAMPLE.to_owned()));
        assert!(!state.stale);
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
}
