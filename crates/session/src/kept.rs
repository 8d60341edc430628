//! What was kept of a session, to be restored.

use crate::user_input::UserInput;

/// What was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What was in hand.
    pub input: UserInput,
    /// What was pinned beside it.
    pub pinned: Option<UserInput>,
}
