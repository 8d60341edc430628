//! Percent-encoding of what stands between the marks of a link (RFC 3986, section 2.1).

/// What stands as it is beside letters and digits.
const PLAIN: &[u8] = b"-._~,:/*|()[]";

/// Adds `text` to `out`.
pub(super) fn encode(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// The text behind `encoded`, if it is one; a percent sign without two digits stands for itself.
pub(super) fn decode(encoded: &str) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut rest = encoded.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let [byte, behind @ ..] = rest {
        let pair = (digit(behind.first()), digit(behind.get(1)));
        if let (b'%', (Some(high), Some(low))) = (*byte, pair) {
            out.push((high << 4 | low).to_le_bytes()[0]);
            rest = behind.get(2..).unwrap_or_default();
        } else {
            out.push(*byte);
            rest = behind;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b',')
        .remove(b':')
        .remove(b'/')
        .remove(b'*')
        .remove(b'|')
        .remove(b'(')
        .remove(b')')
        .remove(b'[')
        .remove(b']');

    #[test]
    fn another_library_writes_and_reads_the_same() {
        let every: String = (0..=u8::MAX).map(char::from).collect();
        for text in [&every, "", "a b", "ü€𝄞", "%", "%4"] {
            let mut out = String::new();
            encode(text, &mut out);
            assert_eq!(out, utf8_percent_encode(text, ESCAPED).to_string());
            assert_eq!(decode(&out).as_deref(), Some(text));
        }
        for text in ["%", "%4", "%4g", "%41", "%%41", "%c3%BC", "%c3", "a%20b%", "é%41", "%+1"] {
            let theirs = percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
            assert_eq!(decode(text), theirs, "{text}");
        }
    }
}
