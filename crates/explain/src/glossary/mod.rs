//! The glossary. `page` marks the terms that the page explains where they stand, `guide` those of the guide alone.

use shardscope_source::LaterText;

use super::terms::Term;

macro_rules! on_page {
    (page) => {
        true
    };
    (guide) => {
        false
    };
}

macro_rules! meaning {
    (page $name:literal $short:literal) => {
        concat!($name, "\t", $short, "\n")
    };
    (guide $name:literal $short:literal) => {
        ""
    };
}

macro_rules! terms {
    ($($theme:ident $place:ident $name:literal: $short:literal, $long:literal, $source:literal,
       [$($also:literal),*], [$($see:literal),*];)*) => {
        /// The terms, in the order of the guide.
        pub(super) static TERMS: &[$crate::terms::Term] = &[$($crate::terms::Term {
            theme: $crate::terms::Theme::$theme,
            on_page: on_page!($place),
            name: $name,
            short: $short,
            long: $long,
            source: $source,
            also: &[$($also),*],
            see: &[$($see),*],
        }),*];

        /// What the page says of each term, a line each, apart from [`TERMS`]: the page need not carry the guide's longer texts.
        pub(super) const MEANINGS: &str = concat!($(meaning!($place $name $short)),*);
    };
}

// Behind the macro, which they use.
mod layout;
mod memory;
mod model;
mod time;

/// What the page says of terms, by the glossary's file. Until a program with the feature `tables-later` is given these, no term
/// has a meaning.
static MEANINGS: [LaterText; 4] = [
    LaterText::new("glossary/layout", own(layout::MEANINGS)),
    LaterText::new("glossary/memory", own(memory::MEANINGS)),
    LaterText::new("glossary/time", own(time::MEANINGS)),
    LaterText::new("glossary/model", own(model::MEANINGS)),
];

const fn own(text: &'static str) -> Option<&'static str> {
    if cfg!(feature = "tables-later") { None } else { Some(text) }
}

/// The tables of this crate: what the page says of terms.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    MEANINGS.iter()
}

/// Every term, in the order of the guide.
pub fn glossary() -> impl Iterator<Item = &'static Term> {
    [layout::TERMS, memory::TERMS, time::TERMS, model::TERMS].into_iter().flatten()
}

/// What `name` means, in a sentence or two; none where the page does not explain it or its tables have not arrived.
#[must_use]
pub fn meaning(name: &str) -> Option<&'static str> {
    MEANINGS
        .iter()
        .flat_map(|table| table.text().lines())
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))
}

#[cfg(test)]
mod tests {
    use super::{glossary, meaning};
    use crate::terms::{Term, anchor};
    use shardscope_plan::Field;

    #[test]
    fn every_term_is_short_where_it_must_be_and_has_a_source() {
        for term in glossary() {
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
        for term in glossary() {
            words.push(term.name.to_ascii_lowercase());
            words.extend(term.also.iter().map(|word| word.to_ascii_lowercase()));
            for see in term.see {
                let known = glossary().any(|other| other.name == *see && other.name != term.name)
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
