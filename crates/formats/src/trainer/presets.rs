//! Settings files that begin with a preset of their program.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled};

/// Keys that begin with others by a name (leap-finetune's `training_config.extends: DEFAULT_SFT`, which are in its
/// program: `src/leap_finetune/training/default_configs`), not by a file beside this one.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let is_preset =
        |leaf: &&Leaf| leaf.path.rsplit('.').next() == Some("extends") && !leaf.value.contains(['.', '/']);
    if let Some(leaf) = leaves.all().iter().find(is_preset) {
        let what = "settings of a preset that are in its program; state them here, in place of its name";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
        for leaf in leaves.all().iter().filter(is_preset) {
            leaf.used.set(true);
        }
    }
}
