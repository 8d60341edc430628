//! What a program with the feature `tables-later` has to be given.

use shardscope_source::LaterText;

/// Every table of the engine. They are compiled in, except with the feature `tables-later`: such a program gives each its text,
/// by its name, before it reads anything, and is smaller by some 600 kB.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    shardscope_plan::tables()
        .chain(shardscope_explain::tables())
        .chain(shardscope_launch::tables())
        .chain(shardscope_report::analysis_tool::tables())
}
