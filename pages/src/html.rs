//! Text in HTML.

/// `text` as the content of an element or a quoted attribute.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_of_a_text_is_taken_for_markup() {
        assert_eq!(escape("a < b & \"c\">"), "a &lt; b &amp; &quot;c&quot;&gt;");
    }
}
