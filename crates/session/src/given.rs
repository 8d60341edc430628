//! What a page without readers knows from the start: the readings of the examples' texts.

use super::examples::gallery;
use super::reader::{ReadReply, ReadTask};
use super::texts::texts_of;

/// The name under which [`given`] is stored among the engine's tables.
pub const GIVEN: &str = "readings";

/// The readings of the examples' texts, for [`give`](crate::texts::give): users without a text of their own never
/// wait for the other program.
#[must_use]
pub fn given() -> String {
    let chapters = gallery();
    let examples = chapters.iter().flat_map(|chapter| &chapter.examples).map(|example| &example.input);
    let mut given: Vec<(ReadTask, ReadReply)> = Vec::new();
    // Examples that consist only of settings have no text to read.
    for input in examples.filter(|input| !input.text.trim().is_empty()) {
        let task = ReadTask::texts(&texts_of(input));
        // Two examples may share a text with other settings; readings depend only on texts.
        if given.iter().all(|(known, _)| *known != task) {
            given.push((task.clone(), task.done()));
        }
    }
    // Writing to memory cannot fail, and all keys are text.
    serde_json::to_string(&given).unwrap_or_default()
}
