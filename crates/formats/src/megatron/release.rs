//! The releases of Megatron-LM whose command lines are known.

/// A release of Megatron-LM, ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Release(u8);

const NAMES: [&str; 21] = [
    "2.0",
    "2.5",
    "2.6",
    "23.04",
    "23.06",
    "core 0.4",
    "core 0.5",
    "core 0.6",
    "core 0.7",
    "core 0.8",
    "core 0.9",
    "core 0.10",
    "core 0.11",
    "core 0.12",
    "core 0.13",
    "core 0.14",
    "core 0.15",
    "core 0.16",
    "core 0.17",
    "core 0.18",
    "core 0.19",
];

/// The names of the releases whose command lines are known, the oldest first.
#[must_use]
pub fn known_releases() -> &'static [&'static str] {
    &NAMES
}

impl Release {
    /// 23.06, the last release whose models are all legacy ones.
    pub(super) const LAST_LEGACY: Self = Self(4);
    /// Core 0.6, since which Transformer Engine is the default.
    pub(super) const TRANSFORMER_ENGINE: Self = Self(7);

    /// The release for a letter, `a` being the oldest; `None` for any other letter.
    pub(super) fn of_letter(letter: u8) -> Option<Self> {
        let index = letter.checked_sub(b'a')?;
        (usize::from(index) < NAMES.len()).then_some(Self(index))
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("main")
    }
}
