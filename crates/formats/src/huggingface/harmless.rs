//! Keys of a `config.json` that change no figure, with the reason. A key in no list is reported as not read,
//! since its effect is not known.

use shardscope_source::LaterText;

/// Reasons, each followed by an indented list of keys that affect nothing. In a program with the feature `tables-later`
/// no such key is known until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "harmless.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("harmless.txt")) },
);

/// Every such key of a configuration of this type: those under a reason that begins with "of TYPE," are of that type alone.
pub(super) fn harmless(model_type: &str) -> impl Iterator<Item = &'static str> {
    keys(move |of| of.is_none_or(|of| of == model_type))
}

/// Those that only this type leaves unused.
pub(super) fn unused_by(model_type: &str) -> impl Iterator<Item = &'static str> {
    keys(move |of| of == Some(model_type))
}

fn keys(fits: impl Fn(Option<&str>) -> bool) -> impl Iterator<Item = &'static str> {
    let mut of = None;
    let listed = TABLE.text().lines().filter(move |line| {
        if line.starts_with(' ') {
            return fits(of);
        }
        of = line.strip_prefix("of ").and_then(|rest| rest.split_once(',')).map(|(of, _)| of);
        false
    });
    listed.flat_map(str::split_ascii_whitespace)
}
