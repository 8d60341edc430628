//! Settings that a configuration states, and those that it leaves at a default.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};

/// The origin of settings that nothing states.
pub(super) const DEFAULT: &str = "default of OLMo-core";

/// A leaf that is not null.
pub(super) fn stated<'t>(leaves: &Leaves<'t>, path: &str) -> Option<&'t Leaf> {
    leaves
        .get(path)
        .filter(|leaf| leaf.hole.is_some() || !matches!(leaf.value.as_str(), "" | "null" | "None" | "~"))
}

pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, leaf.shown(), effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// Reports `what` as not modelled if anything is stated at `path` or below.
pub(super) fn lack_below(leaves: &mut Leaves<'_>, path: &str, effect: Effect, what: &str) {
    let below = format!("{path}.");
    let first = leaves.all().iter().find(|leaf| leaf.path.starts_with(&below));
    if let Some(leaf) = first.or_else(|| stated(leaves, path)) {
        let item = NotModelled::new(path, "", effect, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    leaves.pass(path);
    leaves.pass_below(&[below.as_str()]);
}
