//! A constant that an estimate takes as given, and its origin.

/// A constant that an estimate takes as given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// Its name in the engine.
    pub name: &'static str,
    /// Its value in `unit`.
    pub value: f64,
    /// Its unit; empty for a share or a count.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Its source.
    pub source: &'static str,
    /// Whether it is guessed or taken from another part, for lack of a measurement or a published run that determines
    /// it.
    pub assumed: bool,
}

impl Constant {
    /// Creates a constant that is not assumed.
    pub(super) const fn new(
        (name, value, unit): (&'static str, f64, &'static str),
        meaning: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, meaning, source, assumed: false }
    }

    /// The same constant, with `assumed` set as given.
    pub(super) const fn assumed(mut self, assumed: bool) -> Self {
        self.assumed = assumed;
        self
    }
}
