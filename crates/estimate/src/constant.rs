//! A figure that an estimate takes as given, with its origin.

/// A figure that an estimate takes as given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// What it is called in the engine.
    pub name: &'static str,
    /// Its value in `unit`.
    pub value: f64,
    /// Its unit; empty for a share or a count.
    pub unit: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// Whether it is taken over from another part, or guessed, for want of a measurement or a published run that tells it.
    pub assumed: bool,
}

impl Constant {
    /// A constant.
    pub(super) const fn new(
        (name, value, unit): (&'static str, f64, &'static str),
        meaning: &'static str,
        source: &'static str,
    ) -> Self {
        Self { name, value, unit, meaning, source, assumed: false }
    }

    /// The same, assumed where `assumed` says so.
    pub(super) const fn assumed(mut self, assumed: bool) -> Self {
        self.assumed = assumed;
        self
    }
}
