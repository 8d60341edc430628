//! What a program with the feature `tables-later` has to be given.

use shardscope_source::LaterText;

/// Every table of the engine. They are compiled in, except with the feature `tables-later`: such a program must
/// provide each table's text by name before it reads anything, and is some 600 kB smaller.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    shardscope_plan::tables()
        .chain(shardscope_explain::tables())
        .chain(shardscope_launch::tables())
        .chain(shardscope_report::analysis_tool::tables())
}

/// The tables that only readers of texts use. A program with the feature `readers-later` need not be given these.
pub fn reader_tables() -> impl Iterator<Item = &'static LaterText> {
    shardscope_launch::reader_tables()
}

/// Joins texts by name into one, for a program that provides each to its table: each is preceded by a line with its
/// name and its length in bytes. It is only sliced, never parsed, since it is large and a page waits for it.
#[must_use]
pub fn joined<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    texts.map(|(name, text)| format!("{name}\t{}\n{text}", text.len())).collect()
}

/// Splits the output of [`joined`] into texts by name; `None` if it has a different form.
#[must_use]
pub fn separated(mut whole: &str) -> Option<Vec<(&str, &str)>> {
    let mut texts = Vec::new();
    while !whole.is_empty() {
        let (head, rest) = whole.split_once('\n')?;
        let (name, length) = head.split_once('\t')?;
        let (text, behind) = rest.split_at_checked(length.parse().ok()?)?;
        texts.push((name, text));
        whole = behind;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::{joined, separated};

    #[test]
    fn what_was_joined_is_separated_again() {
        let texts = [("one", "a\tb\nc\n"), ("empty", ""), ("two", "é\n7\t3\n")];
        let whole = joined(texts.into_iter());
        assert_eq!(separated(&whole).as_deref(), Some(&texts[..]));
        assert_eq!(separated(""), Some(Vec::new()));
        for other in ["{}", "one\t9\nshort", "one\tx\n", "one\t1\né", "<!doctype html>\n<html>"] {
            assert_eq!(separated(other), None, "{other}");
        }
    }
}
