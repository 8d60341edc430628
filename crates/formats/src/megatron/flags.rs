//! Megatron-LM's command line: every flag of main, and of 21 releases since 2.0 (838 and 133 more).
//!
//! `flags.txt` has one flag per line: four letters, the flag without its dashes, and the name of its setting if that is
//! not the flag in snake case. The letters: its arguments (`=` one value; `+` none, turns on; `-` none, turns off; `~`
//! none, with a `no-` twin; `*` several values; `3` three); what it changes (`l` layout, `m` model, `b` batch, `k`
//! tensors kept in memory, `c` communication, `h` the launch, `.` none of these); the first release that has it; the
//! last one (`.`: still present). Source: the argument parsers themselves, at each release.

use std::sync::OnceLock;

use super::release::Release;
use shardscope_source::{LaterText, suggest};

/// In a program with the feature `tables-later` no flag of Megatron-LM is known until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "flags.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("flags.txt")) },
);

/// The arguments that follow a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    /// One value.
    One,
    /// None; turns its setting on.
    On,
    /// None; turns its setting off.
    Off,
    /// None; turns its setting on, and its `no-` twin turns it off.
    Switch,
    /// All words up to the next flag.
    Several,
}

/// One flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    /// Without dashes.
    pub(super) name: &'static str,
    /// The setting's name if it is not the flag in snake case.
    pub(super) dest: Option<&'static str>,
    /// Its arguments.
    pub(super) arity: Arity,
    /// First release that has it; `None` if only main does.
    pub(super) since: Option<Release>,
    /// Last release that had it; `None` if it is still present.
    pub(super) until: Option<Release>,
}

/// A line of the table with the set of letters in its name.
struct FlagRow {
    letters: u32,
    text: &'static str,
}

/// The table, sorted by name.
fn sorted() -> &'static [FlagRow] {
    static SORTED: OnceLock<Vec<FlagRow>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut lines: Vec<FlagRow> = Vec::new();
        for text in TABLE.text().lines() {
            lines.push(FlagRow { letters: letters(name_of(text)), text });
        }
        lines.sort_by(|a, b| dashed(name_of(a.text)).cmp(dashed(name_of(b.text))));
        lines
    })
}

/// The flag of a name without dashes; `_` counts as `-`.
pub(super) fn find(name: &str) -> Option<Flag> {
    let lines = sorted();
    let found = lines.binary_search_by(|line| dashed(name_of(line.text)).cmp(dashed(name)));
    found.ok().and_then(|at| lines.get(at)).and_then(|line| parse(line.text))
}

/// The flag closest to a misspelled name, if any is close.
pub(super) fn near(name: &str) -> Option<&'static str> {
    let own = letters(name);
    let most = u32::try_from(name.len() / 4).unwrap_or(0).max(1);
    // A letter that occurs in only one of the two names costs an edit.
    let alike =
        |line: &&FlagRow| (own & !line.letters).count_ones().max((line.letters & !own).count_ones()) <= most;
    suggest(name, sorted().iter().filter(alike).map(|line| name_of(line.text)))
}

/// The set of letters in a name, one bit each.
fn letters(name: &str) -> u32 {
    dashed(name).fold(0, |set, byte| set | 1 << (byte.to_ascii_lowercase() & 31))
}

/// The bytes of a name with `_` replaced by `-`.
fn dashed(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte })
}

/// Every flag, in the order of the table.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = Flag> {
    TABLE.text().lines().filter_map(parse)
}

/// The flags that state a setting, in the order of the table.
pub(super) fn of_setting(setting: &str) -> impl Iterator<Item = Flag> + '_ {
    let snake = move |name: &str| name.len() == setting.len() && name.replace('-', "_") == setting;
    TABLE
        .text()
        .lines()
        .filter_map(parse)
        .filter(move |flag| flag.dest.map_or_else(|| snake(flag.name), |dest| dest == setting))
}

/// The flags of Megatron-LM that set `setting`, each with the last release that had it if it was removed.
#[must_use]
pub fn flags_of(setting: &str) -> Vec<(String, Option<&'static str>)> {
    of_setting(setting).map(|flag| (format!("--{}", flag.name), flag.until.map(Release::name))).collect()
}

/// The number of known flags.
#[must_use]
pub fn known_flags() -> usize {
    sorted().len()
}

fn name_of(line: &str) -> &str {
    let rest = line.get(4..).unwrap_or("");
    rest.split_once(' ').map_or(rest, |(name, _)| name)
}

fn parse(line: &'static str) -> Option<Flag> {
    let [arity, _, since, until] = *line.as_bytes().first_chunk()?;
    let arity = match arity {
        b'=' => Arity::One,
        b'+' => Arity::On,
        b'-' => Arity::Off,
        b'~' => Arity::Switch,
        _ => Arity::Several,
    };
    let dest = line.split_once(' ').map(|(_, dest)| dest);
    let (since, until) = (Release::of_letter(since), Release::of_letter(until));
    Some(Flag { name: name_of(line), dest, arity, since, until })
}

#[cfg(test)]
mod tests {
    use super::{Arity, find, name_of, near, sorted};

    #[test]
    fn every_line_is_a_flag() {
        assert_eq!(sorted().len(), 971);
        for line in sorted() {
            assert_eq!(find(name_of(line.text)).map(|flag| flag.name), Some(name_of(line.text)));
        }
        assert_eq!(
            (near("num-layer"), near("hidden-sizes"), near("my-own-thing")),
            (Some("num-layers"), Some("hidden-size"), None)
        );
    }

    #[test]
    fn flags_are_found_in_both_spellings() {
        assert_eq!(find("num_layers").map(|flag| flag.name), Some("num-layers"));
        assert_eq!(
            find("no-rope-fusion").map(|flag| (flag.arity, flag.dest)),
            Some((Arity::Off, Some("apply_rope_fusion")))
        );
        assert_eq!(find("DDP-impl").and_then(|flag| flag.until).map(|last| last.name()), Some("23.06"));
        assert_eq!(find("num-layer"), None);
    }
}
