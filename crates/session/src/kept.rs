//! What was kept of a session, to be restored.

use crate::user_input::UserInput;

/// A session as the browser stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSession {
    /// What was in hand.
    pub input: UserInput,
    /// What was pinned beside it.
    pub pinned: Option<UserInput>,
}
