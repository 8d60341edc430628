//! Settings that a configuration states, and those that it leaves at a default.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};

/// The origin of settings that a file does not state.
pub(super) const DEFAULT: &str = "default of OLMo";

/// A leaf that is not null.
pub(super) fn stated<'t>(leaves: &Leaves<'t>, path: &str) -> Option<&'t Leaf> {
    leaves.get(path).filter(|leaf| !matches!(leaf.value.as_str(), "null" | "None" | "~"))
}

pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, "", effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// The same for a setting that the file leaves at its default.
pub(super) fn lack_default(leaves: &mut Leaves<'_>, path: &str, effect: Effect, what: &str) {
    let value = format!("{DEFAULT}, unless the file says otherwise");
    leaves.reading.not_modelled.push(NotModelled::new(path, &value, effect, what));
}
