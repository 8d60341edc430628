//! Names that all readers of verl share.

/// verl's name as a framework.
pub(super) const VERL: &str = "verl";
/// Prefix of the actor's keys.
pub(super) const ACTOR: &str = "actor_rollout_ref.actor.";

/// A key below a group.
pub(super) fn at(group: &str, key: &str) -> String {
    format!("{group}{key}")
}
