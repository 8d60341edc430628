//! Keys of a `config.json` that change no figure, with the reason. A key that is in no list is said to be not
//! read: what it does is not known.

use shardscope_source::LaterText;

/// Reasons, and indented below each the keys of which nothing depends. Until a program with the feature `tables-later` is given
/// it, no such key is known.
pub(crate) static TABLE: LaterText = LaterText::new(
    "harmless.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("harmless.txt")) },
);

/// Every such key.
pub(super) fn harmless() -> impl Iterator<Item = &'static str> {
    TABLE.text().lines().filter(|line| line.starts_with(' ')).flat_map(str::split_ascii_whitespace)
}
