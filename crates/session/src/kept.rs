//! What was kept of a session, to be restored.

use crate::hand::Hand;

/// What was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What was in hand.
    pub hand: Hand,
    /// What was pinned beside it.
    pub pinned: Option<Hand>,
}
