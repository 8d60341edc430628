//! Options as written.

/// An option's name as written, without the value after `=`.
pub(super) fn flag_name(text: &str) -> &str {
    text.find('=').and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Whether a flag is this one, with its words joined by dashes or underscores.
pub(super) fn is_spelt(flag: &str, dashed: &str) -> bool {
    flag.len() == dashed.len()
        && flag.starts_with('-')
        && flag
            .bytes()
            .zip(dashed.bytes())
            .all(|(sign, known)| sign == known || (sign == b'_' && known == b'-'))
}
