//! The site in the language of its words: what the engine, the guide and `index.html` say in English, put into the
//! language of `src/app/words/` that the build takes; and the sentences themselves, for those who translate.

mod gather;
mod html;

pub use gather::{Sentence, engine, of_pages};
pub use html::{speak, texts};

/// The words of the page, of which the tables at their head are for this crate.
#[allow(dead_code)]
mod words {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../src/app/words/", env!("SHARDSCOPE_LANGUAGE"), ".rs"));

    pub(crate) struct Panel {
        title: &'static str,
        about: &'static str,
    }
}

/// The code of the language that the build takes.
pub const LANGUAGE: &str = words::LANGUAGE;
/// What engine, guide and `index.html` say, in that language.
pub const SAYINGS: &[shardscope::text::Saying] = words::SAYINGS;
