//! Keys of a `config.json` that change no figure, with the reason. A key in no list is reported as not read,
//! since its effect is not known.

use shardscope_source::LaterText;

/// Reasons, each followed by an indented list of keys that affect nothing. In a program with the feature `tables-later`
/// no such key is known until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "harmless.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("harmless.txt")) },
);

/// Every such key.
pub(super) fn harmless() -> impl Iterator<Item = &'static str> {
    TABLE.text().lines().filter(|line| line.starts_with(' ')).flat_map(str::split_ascii_whitespace)
}
