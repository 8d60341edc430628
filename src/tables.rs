//! The engine's tables in both programs of the page.

use std::collections::HashMap;

/// Gives each of the engine's tables its text, from a JSON object with the texts by name; false where one is missing.
pub(crate) fn provide(tables: &str) -> bool {
    let Ok(mut texts) = serde_json::from_str::<HashMap<String, String>>(tables) else { return false };
    shardscope::tables().all(|table| texts.remove(table.name()).map(|text| table.provide(text)).is_some())
}
