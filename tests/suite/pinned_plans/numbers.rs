//! The numbers in the `Debug` output of a figure, and the names of variants: texts and the names of fields and types
//! are ignored, so that a different wording changes nothing.

use std::fmt::{Debug, Write};

/// FNV-1a (Fowler, Noll, Vo): offset and prime of 64 bits.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Parses a debug output, character by character.
pub(super) struct Numbers {
    hash: u64,
    word: String,
    quoted: Option<bool>,
    /// Every word that was hashed, if requested.
    listing: Option<String>,
}

impl Numbers {
    pub(super) fn new(listing: bool) -> Self {
        Self { hash: OFFSET, word: String::new(), quoted: None, listing: listing.then(String::new) }
    }

    /// Adds the `Debug` output of `figures`.
    pub(super) fn add(&mut self, name: &str, figures: &dyn Debug) {
        if let Some(listing) = &mut self.listing {
            let _ = write!(listing, "\n{name}:");
        }
        let _ = writeln!(self, "{figures:?}");
    }

    /// Adds a text verbatim: a rule that nothing else reflects.
    pub(super) fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(PRIME);
    }

    /// 32 bits of the hash of everything added.
    pub(super) fn hash(&self) -> u32 {
        ((self.hash >> 32) ^ self.hash) as u32
    }

    /// The hashed words.
    pub(super) fn listing(self) -> String {
        self.listing.unwrap_or_default()
    }

    /// Ends a word: a number always counts, a name only if nothing belonging to it follows, as after a type or a field.
    fn end(&mut self, next: char) {
        let first = self.word.chars().next();
        let counts = match first {
            None => return,
            Some(first) if first.is_ascii_digit() || first == '-' => true,
            _ if matches!(self.word.as_str(), "inf" | "NaN" | "true" | "false") => true,
            Some(first) => first.is_ascii_uppercase() && !matches!(next, '(' | ' ' | '{'),
        };
        if counts {
            let word = std::mem::take(&mut self.word);
            self.text(&word);
            self.byte(b' ');
            if let Some(listing) = &mut self.listing {
                listing.push(' ');
                listing.push_str(&word);
            }
        }
        self.word.clear();
    }
}

impl Write for Numbers {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for one in text.chars() {
            match self.quoted {
                // A character after a backslash ends nothing.
                Some(true) => self.quoted = Some(false),
                Some(false) if one == '\\' => self.quoted = Some(true),
                Some(false) if one == '"' => self.quoted = None,
                Some(false) => {}
                None if one == '"' => {
                    self.end(one);
                    self.quoted = Some(false);
                }
                None if one.is_ascii_alphanumeric() || matches!(one, '_' | '-' | '.' | '+') => {
                    self.word.push(one)
                }
                None => self.end(one),
            }
        }
        Ok(())
    }
}

#[test]
fn numbers_and_variants_count_and_words_do_not() {
    #[derive(Debug)]
    #[allow(dead_code)]
    enum Kind {
        Ring,
        Of(u64),
    }
    #[derive(Debug)]
    #[allow(dead_code)]
    struct One {
        name: &'static str,
        times: [f64; 3],
        kind: Kind,
        other: Option<Kind>,
        done: bool,
    }
    let one = One {
        name: "a \"7\" b",
        times: [1.5e-9, -0.0, 3.0],
        kind: Kind::Ring,
        other: Some(Kind::Of(7)),
        done: true,
    };
    let mut numbers = Numbers::new(true);
    numbers.add("one", &one);
    assert_eq!(numbers.listing(), "\none: 1.5e-9 -0.0 3.0 Ring 7 true");
}
