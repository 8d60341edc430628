//! The engine's tables in the programs of the page.

use shardscope::session::given::GIVEN;
use shardscope::session::texts::give;

/// Gives each of the engine's tables its text, from the bytes of the file that has all of them; false where one is missing.
pub(crate) fn provide(tables: &[u8]) -> bool {
    let Some(texts) = std::str::from_utf8(tables).ok().and_then(shardscope::separated) else { return false };
    let text = |name: &str| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    // Before the engine's tables: it lies among them and belongs to the session.
    if !text(GIVEN).is_some_and(give) {
        return false;
    }
    shardscope::tables().all(|table| text(table.name()).map(|text| table.provide(text.to_owned())).is_some())
}
