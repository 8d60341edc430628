//! Every word that the page shows, a file for each language; a build has one.
//!
//! A language is a file with the items of `en.rs`; the compiler names what is missing. `SHARDSCOPE_LANGUAGE` says which
//! file a build takes: `SHARDSCOPE_LANGUAGE=xx tools/serve --build` for `xx.rs`, English where nothing is said
//! (`.cargo/config.toml`).
//!
//! The engine speaks English, each sentence beside what it explains. `SAYINGS` has what it says in another language, and
//! what the guide and `index.html` say, which the build puts into that language (`pages/src/language/`).
//! `cargo run -p pages -- words` lists the sentences; one that is missing is shown in English.
//!
//! Sentences have holes, `{0}` to `{9}`, in whatever order the language wants them; where a number decides between two
//! words, a function of the language does. A `>` at the head of a column stands before figures.
//! `[…]` marks a term that the reader may ask about, by its name in the glossary; `[shown|name]` where it is written
//! otherwise. Names that the engine gives to things are matched with terms in `NAMED`.

include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/app/words/", env!("SHARDSCOPE_LANGUAGE"), ".rs"));

/// The language itself, which the build writes into every page.
const _: &str = LANGUAGE;

/// What the engine says in the page's language.
pub(crate) fn spoken(text: String) -> String {
    shardscope::text::spoken(&text, SAYINGS).unwrap_or(text)
}

/// What stands at the head of a panel.
pub(crate) struct Panel {
    /// Its name.
    pub title: &'static str,
    /// A sentence about it.
    pub about: &'static str,
}

/// The sentence with its holes filled.
#[inline(never)]
pub(crate) fn fill<const HOLES: usize>(sentence: &str, holes: [String; HOLES]) -> String {
    filled(sentence, &holes)
}

/// The sentence with its holes filled by whole numbers.
#[inline(never)]
pub(crate) fn numbered(sentence: &str, holes: &[u64]) -> String {
    let mut written = Vec::new();
    for hole in holes {
        written.push(digits(*hole));
    }
    filled(sentence, &written)
}

/// A number as it stands in a hole.
#[inline(never)]
pub(crate) fn digits(number: u64) -> String {
    number.to_string()
}

#[inline(never)]
fn filled(sentence: &str, holes: &[String]) -> String {
    let mut text = String::new();
    let mut rest = sentence;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        let digit = behind.bytes().next().unwrap_or_default().wrapping_sub(b'0');
        text.push_str(holes.get(usize::from(digit)).map_or("", String::as_str));
        rest = behind.get(2..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}
