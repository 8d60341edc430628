//! A settings file whose trainer leaves to the launch how ranks share the model, where there is no launch.

use crate::formats::{Role, Text};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

const SAID: &str = "TRL leaves what ranks shard to accelerate's configuration, which is not here: each of several ranks is taken to hold the \
     whole model";
const HINT: &str = "paste that configuration or the launch line beside this file, or set zero_stage";

/// Says what is assumed where neither a command nor a file of the launcher or of the engine says what ranks shard.
pub(crate) fn tell(texts: &mut [Text]) {
    let decides = |text: &Text| {
        text.format.is_none_or(|format| matches!(format.role(), Role::Job | Role::Launcher | Role::Engine))
    };
    let says = |text: &Text| {
        let found = &text.reading.found;
        found.iter().any(|found| matches!(found.field, Field::ZeroStage | Field::DataParallelEngine))
    };
    if texts.iter().any(|text| decides(text) || says(text)) {
        return;
    }
    let left = |text: &&mut Text| text.format.is_some_and(|format| format.is_sharded_by_launch());
    if let Some(text) = texts.iter_mut().find(left) {
        text.reading.diagnostics.push(Diagnostic::warning(Code::MissingFile, SAID).hint(HINT));
    }
}
