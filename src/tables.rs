//! The engine's tables in the programs of the page.

use std::collections::HashMap;

use shardscope::session::given::GIVEN;
use shardscope::session::texts::give;

/// Gives each of the engine's tables its text, from a JSON object with the texts by name; false where one is missing.
pub(crate) fn provide(tables: &str) -> bool {
    let Ok(mut texts) = serde_json::from_str::<HashMap<String, String>>(tables) else { return false };
    // Before the engine's tables: it lies among them and belongs to the session.
    if !texts.remove(GIVEN).is_some_and(|given| give(&given)) {
        return false;
    }
    shardscope::tables().all(|table| texts.remove(table.name()).map(|text| table.provide(text)).is_some())
}
