//! Between the engine's bytes and the browser's UTF-16 units.

/// The UTF-16 unit at byte `byte` of `text`; its length when the byte is past the end.
#[must_use]
pub fn utf16_offset(text: &str, byte: u32) -> u32 {
    let mut units = 0_u32;
    for (at, character) in text.char_indices() {
        if at >= byte as usize {
            break;
        }
        // Above the basic multilingual plane a character is a surrogate pair, two UTF-16 units.
        units = units.saturating_add(if character > '\u{ffff}' { 2 } else { 1 });
    }
    units
}

/// The byte at UTF-16 unit `unit` of `text`; its length when the unit is past the end.
#[must_use]
pub fn byte_offset(text: &str, unit: u32) -> u32 {
    let mut units = 0_u32;
    for (at, character) in text.char_indices() {
        // `>=`: an offset in the middle of a surrogate pair moves on to the next character.
        if units >= unit {
            return u32::try_from(at).unwrap_or(u32::MAX);
        }
        units = units.saturating_add(if character > '\u{ffff}' { 2 } else { 1 });
    }
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{byte_offset, utf16_offset};

    #[test]
    fn offsets_agree_both_ways() {
        let text = "é𝛼 --tp 2";
        for (at, _) in text.char_indices() {
            let byte = u32::try_from(at).unwrap_or(0);
            assert_eq!(byte_offset(text, utf16_offset(text, byte)), byte);
        }
        assert_eq!(utf16_offset(text, 6), 3);
        assert_eq!(utf16_offset(text, 999), 10);
        assert_eq!(byte_offset(text, 999), 13);
    }
}
