//! The state and what changes it.

use std::rc::Rc;

use super::EXAMPLE;

/// Everything the reader has in hand.
#[derive(Clone, Debug)]
pub struct State {
    /// What the box holds.
    pub text: Rc<str>,
    /// Counts the events applied, so that equal states are told apart cheaply.
    pub revision: u64,
}

/// What can happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// The text was edited.
    Edit(String),
    /// The reader stopped typing.
    Settle,
}

impl Default for State {
    fn default() -> Self {
        Self { text: Rc::from(EXAMPLE), revision: 0 }
    }
}

/// The state after `event`.
#[must_use]
pub fn apply(mut state: State, event: Event) -> State {
    state.revision += 1;
    match event {
        Event::Edit(text) => state.text = Rc::from(text),
        Event::Settle => {}
    }
    state
}
