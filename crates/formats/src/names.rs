//! Names that readers know. There are many and few texts need them, so they are in a separate file
//! for which the page need not wait.

use shardscope_source::LaterText;

/// In a program with the feature `tables-later` readers know none of these names until the table is supplied,
/// and report such keys as not read.
pub static TABLE: LaterText = LaterText::new(
    "names.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("names.txt")) },
);

/// The lines of a reader's section, which begins with its name in brackets and a remark; lines that
/// begin with `#` are also remarks.
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

/// A phrase for the number of keys that change no figure.
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
