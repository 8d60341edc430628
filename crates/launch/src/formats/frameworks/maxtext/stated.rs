//! What every part of the reader states: whose defaults they are, and what stops.

use crate::formats::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};

/// The origin of defaults.
pub(super) const WHOSE: &str = "base.yml of MaxText";

/// Stops the verdict at a key.
pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}
