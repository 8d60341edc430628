//! What a page without readers has from its start: what the texts of the examples say.

use super::examples::gallery;
use super::reader::{ReadReply, ReadTask};
use super::texts::texts_of;

/// The name under which [`given`] lies among the engine's tables.
pub const GIVEN: &str = "readings";

/// What the texts of the examples say, for [`give`](crate::texts::give): who brings no text of their own never waits for the other program.
#[must_use]
pub fn given() -> String {
    let chapters = gallery();
    let examples = chapters.iter().flat_map(|chapter| &chapter.examples).map(|example| &example.input);
    let mut given: Vec<(ReadTask, ReadReply)> = Vec::new();
    // Examples that are settings alone have no text, and so nothing to read.
    for input in examples.filter(|input| !input.text.trim().is_empty()) {
        let task = ReadTask::texts(&texts_of(input));
        // Two examples may share a text with other settings; readings hang on texts alone.
        if given.iter().all(|(known, _)| *known != task) {
            given.push((task.clone(), task.done()));
        }
    }
    // Writing to memory cannot fail, and all keys are text.
    serde_json::to_string(&given).unwrap_or_default()
}
