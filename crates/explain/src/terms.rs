//! What the words of the trade mean: a short text for where a word stands, a longer one with its source for the guide.

/// What a term is about; the guide lists terms under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// How a run is cut over accelerators.
    Split,
    /// Batches and the order in which stages work through them.
    Schedule,
    /// What takes room on a device.
    Memory,
    /// What accelerators send to each other, and over what.
    Communication,
    /// Arithmetic, rates and time.
    Speed,
    /// What a model is made of.
    Model,
}

impl Theme {
    /// Every theme with its heading, in the order of the guide.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Split, "How a run is split"),
        (Self::Schedule, "Batches and schedules"),
        (Self::Memory, "Memory"),
        (Self::Communication, "Communication"),
        (Self::Speed, "Arithmetic and time"),
        (Self::Model, "The model"),
    ];
}

/// A word and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// What it is about.
    pub theme: Theme,
    /// Whether the page explains it where it stands.
    pub on_page: bool,
    /// The word itself.
    pub name: &'static str,
    /// What it means, in at most [`Term::SHORT`] characters.
    pub short: &'static str,
    /// More about it, for the guide.
    pub long: &'static str,
    /// Paper with its section, documentation, or framework file.
    pub source: &'static str,
    /// Other words for it.
    pub also: &'static [&'static str],
    /// Other terms, and settings by name.
    pub see: &'static [&'static str],
}

impl Term {
    /// Most characters of a short text.
    pub const SHORT: usize = 160;
}

/// What `name` means, in a sentence or two; for the terms that the page explains.
#[must_use]
pub fn meaning(name: &str) -> Option<&'static str> {
    super::glossary::ON_PAGE.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))
}

/// Where the guide has `name`: the letters and digits of it in lower case, anything between them a hyphen.
#[must_use]
pub fn anchor(name: &str) -> String {
    let mut anchor = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            anchor.push(char::from(byte.to_ascii_lowercase()));
        } else if !anchor.is_empty() && !anchor.ends_with('-') {
            anchor.push('-');
        }
    }
    if anchor.ends_with('-') {
        anchor.pop();
    }
    anchor
}

#[cfg(test)]
mod tests {
    use super::{Term, anchor, meaning};
    use crate::GLOSSARY;
    use shardscope_plan::Field;

    #[test]
    fn every_term_is_short_where_it_must_be_and_has_a_source() {
        for term in GLOSSARY {
            let length = term.short.chars().count();
            assert!(length <= Term::SHORT, "{}: {length} characters", term.name);
            assert!(
                term.short.len() > 20 && term.long.len() > 40 && !term.source.is_empty(),
                "{}",
                term.name
            );
            for text in [term.short, term.long] {
                assert!(text.ends_with('.') && !text.contains("  ") && !text.contains('\t'), "{text}");
            }
            assert_eq!(meaning(term.name), term.on_page.then_some(term.short), "{}", term.name);
        }
    }

    #[test]
    fn no_word_has_two_meanings_and_every_reference_leads_somewhere() {
        let mut words: Vec<String> = Vec::new();
        for term in GLOSSARY {
            words.push(term.name.to_ascii_lowercase());
            words.extend(term.also.iter().map(|word| word.to_ascii_lowercase()));
            for see in term.see {
                let known = GLOSSARY.iter().any(|other| other.name == *see && other.name != term.name)
                    || Field::ALL.iter().any(|field| field.name() == *see);
                assert!(known, "{}: {see}", term.name);
            }
        }
        let mut once = words.clone();
        once.sort();
        once.dedup();
        words.sort();
        assert_eq!(once, words);
    }

    #[test]
    fn anchors_are_words_of_an_address() {
        assert_eq!(anchor("GiB (and GB)"), "gib-and-gb");
        assert_eq!(anchor("n0_g0"), "n0_g0");
        assert_eq!(meaning("no such word"), None);
    }
}
