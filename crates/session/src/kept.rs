//! The stored part of a session, to be restored.

use crate::user_input::UserInput;

/// A session as the browser stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSession {
    /// The current input.
    pub input: UserInput,
    /// The pinned input, if any.
    pub pinned: Option<UserInput>,
}
