/// Whether one of the ASCII characters `marks` is in `text`.
#[inline(never)]
pub fn has_any(text: &str, marks: &str) -> bool {
    text.bytes().any(|byte| marks.as_bytes().contains(&byte))
}

/// Whether `word` is one of `words`, a list with a blank between each two: one text takes far less room than a place
/// and a length for each.
#[inline(never)]
pub fn among(word: &str, words: &str) -> bool {
    !word.is_empty() && words.split(' ').any(|known| known == word)
}

/// The parts of `text` between the ASCII characters `marks`.
#[inline(never)]
pub fn split_any<'t>(text: &'t str, marks: &str) -> Vec<&'t str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, byte) in text.bytes().enumerate() {
        if marks.as_bytes().contains(&byte) {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + 1;
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// `text` without quotes around it.
#[inline(never)]
pub fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::{has_any, split_any, unquoted};

    #[test]
    fn marks_part_texts() {
        assert_eq!(split_any("[1,ü 2]", "[], "), ["", "1", "ü", "2", ""]);
        assert_eq!(split_any("", ","), [""]);
        assert!(has_any("a,b", ";,") && !has_any("äb", ",;"));
        assert_eq!(unquoted("'\"a'b\""), "a'b");
    }
}
