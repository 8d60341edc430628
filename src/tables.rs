//! The engine's tables in the programs of the page.

use shardscope::session::given::GIVEN;
use shardscope::session::texts::give;

/// Gives each of the engine's tables its text, from the bytes of `tables.txt`, followed by `readers.txt` if the
/// program has readers; false where one is missing.
pub(crate) fn provide(tables: &[u8]) -> bool {
    let Some(texts) = std::str::from_utf8(tables).ok().and_then(shardscope::separated) else { return false };
    let text = |name: &str| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    // Before the engine's tables: it is stored among them but belongs to the session.
    if !text(GIVEN).is_some_and(give) {
        return false;
    }
    // The page lets another program read texts, and is not sent the tables for that.
    let left_out =
        |name: &str| cfg!(feature = "page") && shardscope::reader_tables().any(|table| table.name() == name);
    shardscope::tables()
        .filter(|table| !left_out(table.name()))
        .all(|table| text(table.name()).map(|text| table.provide(text.to_owned())).is_some())
}
