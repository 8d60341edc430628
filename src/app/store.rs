//! The session as yew holds it.

use std::rc::Rc;

use shardscope::session::{Event, State, apply};
use yew::{Reducible, UseReducerHandle};

/// A state; two are the same when no event lies between them.
#[derive(Clone)]
pub(crate) struct Store(pub(crate) State);

impl PartialEq for Store {
    fn eq(&self, other: &Self) -> bool {
        self.0.revision == other.0.revision
    }
}

impl Reducible for Store {
    type Action = Event;

    fn reduce(self: Rc<Self>, event: Event) -> Rc<Self> {
        Rc::new(Self(apply(self.0.clone(), event)))
    }
}

impl std::ops::Deref for Store {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// The session, as views get it.
pub(crate) type Session = UseReducerHandle<Store>;
