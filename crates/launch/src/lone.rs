//! A settings file whose trainer leaves to the launch how ranks share the model, where there is no launch.

use crate::formats::{Role, Text, left_to_accelerate};
use shardscope_plan::Field;

/// What the missing launch would say it in.
const FILE: &str = "accelerate's configuration";

/// Asks what ranks shard where neither a command nor a file of the launcher or of the engine says it: without them every
/// rank would silently hold the whole model.
pub(crate) fn ask(texts: &mut [Text]) {
    let decides = |text: &Text| {
        text.format.is_none_or(|format| matches!(format.role(), Role::Job | Role::Launcher | Role::Engine))
    };
    if texts.iter().any(decides) {
        return;
    }
    let says = |text: &Text| text.reading.found.iter().any(|found| found.field == Field::ZeroStage);
    if texts.iter().any(says) {
        return;
    }
    let left = |text: &&mut Text| text.format.is_some_and(|format| format.is_sharded_by_launch());
    if let Some(text) = texts.iter_mut().find(left) {
        left_to_accelerate(&mut text.reading, FILE, "", None);
    }
}
