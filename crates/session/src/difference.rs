//! Where two texts differ.

/// The piece in which two texts differ. Unit: byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// First byte that differs, in both texts.
    pub start: usize,
    /// End of the changed range in the older text, exclusive.
    pub old_end: usize,
    /// End of the changed range in the newer text, exclusive.
    pub new_end: usize,
}

impl Difference {
    /// `None` when the texts are equal. Whole characters only: all three offsets are char boundaries.
    #[must_use]
    pub fn between(old: &str, new: &str) -> Option<Self> {
        if old == new {
            return None;
        }
        let mut start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        // Both texts are checked: equal leading bytes can end inside characters that differ only in their last byte.
        while !old.is_char_boundary(start) || !new.is_char_boundary(start) {
            start -= 1;
        }
        // Prefix and suffix must not overlap: for "aa" and "aaa" the shared suffix would otherwise count bytes of the
        // prefix twice.
        let room = old.len().min(new.len()) - start;
        let mut same =
            old.bytes().rev().zip(new.bytes().rev()).take(room).take_while(|(a, b)| a == b).count();
        // Ends inside a character are moved towards the end of the text, for the same reason.
        while !old.is_char_boundary(old.len() - same) || !new.is_char_boundary(new.len() - same) {
            same -= 1;
        }
        Some(Self { start, old_end: old.len() - same, new_end: new.len() - same })
    }
}
