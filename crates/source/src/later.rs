//! Tables of text that are compiled in, or provided to the program at run time.

use std::sync::OnceLock;

/// A table as text, either compiled in or provided. This keeps the page's program small: its tables arrive
/// separately.
#[derive(Debug)]
pub struct LaterText {
    /// Its name, by which the loader of tables says which one it provides.
    name: &'static str,
    /// The text, if compiled in; `None` in the page's programs.
    own: Option<&'static str>,
    provided: OnceLock<String>,
}

impl LaterText {
    /// `own` is the text if it is compiled in; without it the table is empty until it is provided.
    #[must_use]
    pub const fn new(name: &'static str, own: Option<&'static str>) -> Self {
        Self { name, own, provided: OnceLock::new() }
    }

    /// The name under which it is provided.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Gives the table its text. An existing text stays: a second caller would provide the same.
    pub fn provide(&self, text: String) {
        let _ = self.provided.set(text);
    }

    /// The text; empty if it is neither compiled in nor provided yet.
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
