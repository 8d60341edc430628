//! What can happen to the state.

use std::rc::Rc;

use super::map::Colour;
use super::{OwnRun, PtrEq, Shown, StoredSession, UserInput};
use shardscope_measured::Measured;
use shardscope_source::{Diagnostic, Severity};
use shardscope_topology::Rank;

/// A pinned plan, for comparison.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// What made it.
    pub input: UserInput,
    /// The plan with its estimates.
    pub shown: PtrEq<Shown>,
}

/// Values tried by hand that would not have formed a plan, so the state kept the previous ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The settings with the values that were tried.
    pub values: Vec<(String, String)>,
    /// Message of the first error.
    pub reason: String,
}

impl Refused {
    pub(super) fn new(values: Vec<(String, String)>, said: &[Diagnostic]) -> Self {
        // The first error is the first contradiction found; requests for more input come later. Errors are in the
        // order of the checks; a later one is often only a consequence.
        let worst = said.iter().find(|one| one.severity == Severity::Error).or_else(|| said.first());
        let reason = worst.map(|one| one.message.clone()).unwrap_or_default();
        Self { values, reason }
    }
}

/// What the user, the browser or a link can do to the state.
#[derive(Clone, Debug)]
pub enum Event {
    /// The text was edited; the answer waits until the user pauses.
    Edit(String),
    /// The user paused.
    Settle,
    /// Computes the advice for an answer that was given without it so that the figures appear sooner.
    Advise,
    /// Another input, such as a file or an example, replaces the current one.
    Open(Box<UserInput>),
    /// The same for settings alone, which amend such a current plan without a separate history entry.
    Start(Box<UserInput>),
    /// The content of a link's fragment replaces the current input; if it cannot be read, nothing changes.
    Follow(String),
    /// Restores what the browser stored.
    Restore(Box<StoredSession>),
    /// What the run's own tools printed changes: a log was pasted, a file was read or removed.
    Own(Box<OwnRun>),
    /// A log was read: its text, and the figures in it.
    Measured(Rc<str>, Vec<Measured>),
    /// One step back.
    Undo,
    /// One step forward.
    Redo,
    /// Pins the plan shown, or unpins the pinned one.
    Pin,
    /// Unpins the pinned plan.
    Unpin,
    /// Pins this plan.
    Hold(PtrEq<Pinned>),
    /// Swaps the pinned plan with the current one.
    Swap,
    /// The message about a link was read.
    Dismiss,
    /// Several settings get values by hand at once; an empty value unsets what the text states.
    Try(Vec<(String, String)>),
    /// The same applied to an earlier input, which replaces the current one: another layout from a list that was
    /// searched from there.
    TryOn(Box<UserInput>, Vec<(String, String)>),
    /// A setting or a variable gets a value by hand; an empty one unsets it.
    Set {
        /// A setting's name, or a variable's.
        name: String,
        /// Its value.
        value: String,
    },
    /// Continue without settings that are not modelled, and mark the verdict with them: their names, separated by
    /// spaces.
    Without(String),
    /// Drops a value given by hand.
    Unset(String),
    /// Drops all values given by hand.
    UnsetAll,
    /// Colours the map by something else.
    Paint(Colour),
    /// Picks a GPU, or none.
    Pick(Option<Rank>),
}
