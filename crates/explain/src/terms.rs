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

/// Where the guide has `name`: the letters and digits of it in lower case, anything between them a hyphen.
#[must_use]
pub fn anchor(name: &str) -> String {
    // No hyphen at either end, and never two: as the guide's headings have it.
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
