//! Percent-encoding of the names and values in a link (RFC 3986, section 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is escaped: everything except letters, digits and the punctuation that chat tools and browsers leave
/// unchanged. Links are canonical, so this set must never change.
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

/// `text`, escaped.
pub(super) fn encode(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, ESCAPED)
}

/// Decodes `encoded`; `None` if the result is not UTF-8. A percent sign without two digits stands for itself, as
/// people type links by hand.
pub(super) fn decode(encoded: &str) -> Option<String> {
    percent_decode_str(encoded).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn what_is_escaped_comes_back() {
        let every: String = (0..=u8::MAX).map(char::from).collect();
        for text in [&every, "", "a b", "ü€𝄞", "%", "%4"] {
            assert_eq!(decode(&encode(text).to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn the_marks_of_a_link_are_escaped_and_plain_ones_are_not() {
        assert_eq!(encode("a-._~,:/*|()[]0").to_string(), "a-._~,:/*|()[]0");
        assert_eq!(encode("&=#!+% \"ü").to_string(), "%26%3D%23%21%2B%25%20%22%C3%BC");
    }

    #[test]
    fn what_people_type_is_read() {
        for (text, expected) in [
            ("%", Some("%")),
            ("%4g", Some("%4g")),
            ("%%41", Some("%A")),
            ("%c3%BC", Some("ü")),
            ("%c3", None),
            ("%+1", Some("%+1")),
        ] {
            assert_eq!(decode(text).as_deref(), expected, "{text}");
        }
    }
}
