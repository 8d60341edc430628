//! What can happen to the state.

use super::map::Colour;
use super::{PtrEq, Shown, StoredSession, UserInput};
use shardscope_source::{Diagnostic, Severity};
use shardscope_topology::Rank;

/// A plan held beside another.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// What made it.
    pub input: UserInput,
    /// The plan with its estimates.
    pub shown: PtrEq<Shown>,
}

/// Values tried by hand that would have made no plan, so that the state kept the ones before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The settings with the values that were tried.
    pub values: Vec<(String, String)>,
    /// Message of the first error.
    pub reason: String,
}

impl Refused {
    pub(super) fn new(values: Vec<(String, String)>, said: &[Diagnostic]) -> Self {
        // The first error is the first contradiction found; what only asks for more comes behind.
        // Errors stand in the order of the checks; a later one is often only a consequence.
        let worst = said.iter().find(|one| one.severity == Severity::Error).or_else(|| said.first());
        let reason = worst.map(|one| one.message.clone()).unwrap_or_default();
        Self { values, reason }
    }
}

/// What the reader, the browser or a link can do to the state.
#[derive(Clone, Debug)]
pub enum Event {
    /// The text was edited; the answer waits until the reader pauses.
    Edit(String),
    /// The reader paused.
    Settle,
    /// The advice of an answer that was given without it, for the figures to be there sooner.
    Advise,
    /// Another input, such as a file or an example, replaces the one in hand.
    Open(Box<UserInput>),
    /// The same for settings alone, which amend such a plan in hand: no entry of its own in the history.
    Start(Box<UserInput>),
    /// What a link's fragment carries takes the place of everything in hand; what cannot be read leaves it.
    Follow(String),
    /// Restores what the browser kept.
    Restore(Box<StoredSession>),
    /// One step back.
    Undo,
    /// One step forth again.
    Redo,
    /// The plan shown is held beside what follows, or the one held is let go.
    Pin,
    /// No plan is held any more.
    Unpin,
    /// This plan is held beside what follows.
    Hold(PtrEq<Pinned>),
    /// The plan held and the one in hand change places.
    Swap,
    /// The remark about a link was read.
    Dismiss,
    /// Several settings get values by hand at once; an empty value takes back what the text states.
    Try(Vec<(String, String)>),
    /// The same on what was in hand earlier, which takes the place of what is: another layout of a list that was searched
    /// from there.
    TryOn(Box<UserInput>, Vec<(String, String)>),
    /// A setting or a variable gets a value by hand; an empty one takes it back.
    Set {
        /// A setting's name, or a variable's.
        name: String,
        /// Its value.
        value: String,
    },
    /// Settings that are not modelled are gone on without, and the verdict marked with them: their names, with blanks between them.
    Without(String),
    /// A value given by hand is forgotten.
    Unset(String),
    /// All values given by hand are forgotten.
    UnsetAll,
    /// The map is to be coloured by something else.
    Paint(Colour),
    /// A GPU was picked, or none.
    Pick(Option<Rank>),
}
