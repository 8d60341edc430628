//! Where two texts differ.

/// The piece in which two texts differ. Unit: byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it starts in both.
    pub start: usize,
    /// Where it ends in the older text.
    pub old_end: usize,
    /// Where it ends in the newer text.
    pub new_end: usize,
}

impl Difference {
    /// Between `old` and `new`, whole characters only; none when they are equal.
    #[must_use]
    pub fn between(old: &str, new: &str) -> Option<Self> {
        if old == new {
            return None;
        }
        let mut start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        while !old.is_char_boundary(start) || !new.is_char_boundary(start) {
            start -= 1;
        }
        let room = old.len().min(new.len()) - start;
        let mut same =
            old.bytes().rev().zip(new.bytes().rev()).take(room).take_while(|(a, b)| a == b).count();
        while !old.is_char_boundary(old.len() - same) || !new.is_char_boundary(new.len() - same) {
            same -= 1;
        }
        Some(Self { start, old_end: old.len() - same, new_end: new.len() - same })
    }
}
