//! Names that readers know, which are many and wanted by few texts: kept apart, so that the page need not wait for them.

use shardscope_source::LaterText;

/// Until a program with the feature `tables-later` is given it, readers know none of these names, and say of the keys that they
/// were not read.
pub(crate) static TABLE: LaterText = LaterText::new(
    "names.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("names.txt")) },
);

/// The lines of a reader's section, which begins with its name in brackets and a remark; those that begin with `#` are remarks too.
pub(super) fn section(reader: &str) -> impl Iterator<Item = &'static str> {
    let begins = move |line: &&str| {
        line.strip_prefix('[').and_then(|line| line.split_once(']')).is_some_and(|(name, _)| name == reader)
    };
    TABLE
        .text()
        .lines()
        .skip_while(move |line| !begins(line))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
}

/// The words of a reader's section.
pub(super) fn words(reader: &str) -> impl Iterator<Item = &'static str> {
    section(reader).flat_map(str::split_ascii_whitespace)
}

/// How many keys of a text change no figure, in words.
pub(super) fn idle_keys(count: usize) -> String {
    let words = if count == 1 {
        "key that does not affect the estimate"
    } else {
        "keys that do not affect the estimate"
    };
    format!("{count} {words}")
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn a_section_holds_the_lines_of_its_reader_alone() {
        assert!(section("openrlhf").all(|line| line.split(' ').count() == 2));
        assert!(section("verl").all(|line| line.contains(": ")));
        assert!(section("openrlhf").count() > 100 && section("verl").count() > 5);
        assert_eq!(section("nobody").count(), 0);
    }
}
