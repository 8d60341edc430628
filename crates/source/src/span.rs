use serde::{Deserialize, Serialize};

/// A half-open range of bytes in a [`Source`](super::Source), 32 bits each on every platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// First byte, counted over all texts of the source.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`; an end before the start gives an empty range at `start`.
    pub const fn new(start: u32, end: u32) -> Self {
        let end = if end < start { start } else { end };
        Self { start, end }
    }

    /// The same from `usize` positions; positions past 4 GiB are clamped.
    pub fn from_bytes(start: usize, end: usize) -> Self {
        let clamp = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self::new(clamp(start), clamp(end))
    }

    /// How many bytes it covers.
    pub const fn len(self) -> u32 {
        self.end - self.start
    }

    /// Whether it covers nothing (just a position).
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether `other` lies wholly inside.
    pub const fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The part from byte `from` to byte `to`, relative to its start and clamped to it.
    #[must_use]
    pub fn part(self, from: u32, to: u32) -> Span {
        let start = self.start.saturating_add(from).min(self.end);
        Span::new(start, self.start.saturating_add(to).min(self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn parts_stay_inside() {
        let span = Span::new(10, 14);
        assert_eq!(span.part(1, 3), Span::new(11, 13));
        assert_eq!(span.part(2, 99), Span::new(12, 14));
        assert_eq!(span.part(50, 60), Span::new(14, 14));
        assert!(span.contains(Span::new(10, 14)) && !span.contains(Span::new(9, 11)));
    }
}
