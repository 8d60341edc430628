//! Tables of text that are compiled in, or handed to the program once it runs.

use std::sync::OnceLock;

/// A table as text, either compiled in or provided. The page's program is smaller by its tables, which arrive beside it.
#[derive(Debug)]
pub struct LaterText {
    /// Its name, by which whoever loads tables says which one it provides.
    name: &'static str,
    /// The text, where it is compiled in; none in the page's programs.
    own: Option<&'static str>,
    provided: OnceLock<String>,
}

impl LaterText {
    /// `own` is the text where it is compiled in; without one the table is empty until it is provided.
    #[must_use]
    pub const fn new(name: &'static str, own: Option<&'static str>) -> Self {
        Self { name, own, provided: OnceLock::new() }
    }

    /// The name under which it is provided.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Gives the table its text. One that is there already stays: whoever comes second brings the same.
    pub fn provide(&self, text: String) {
        let _ = self.provided.set(text);
    }

    /// The text; empty where it is neither compiled in nor provided yet.
    #[must_use]
    pub fn text(&self) -> &str {
        self.own.or_else(|| self.provided.get().map(String::as_str)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::LaterText;

    #[test]
    fn a_table_is_empty_until_it_is_provided_and_then_stays() {
        let later = LaterText::new("later", None);
        assert_eq!((later.name(), later.text()), ("later", ""));
        later.provide("one".to_owned());
        later.provide("two".to_owned());
        assert_eq!(later.text(), "one");
        assert_eq!(LaterText::new("own", Some("own")).text(), "own");
    }
}
