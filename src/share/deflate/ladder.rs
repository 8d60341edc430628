/// A symbol for a range of lengths or distances, told apart by `bits` bits behind it.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The least of them.
    pub(super) base: u32,
    /// Bits behind the symbol.
    pub(super) bits: u32,
}

/// Lengths of matches, from symbol 257 on.
pub(super) const LENGTHS: [Step; 29] = {
    let mut steps = ladder(LEAST, 4);
    steps[28] = Step { base: MOST, bits: 0 };
    steps
};
/// Distances of matches.
pub(super) const DISTANCES: [Step; 30] = ladder(1, 2);
/// The shortest match, and the longest.
pub(super) const LEAST: u32 = 3;
pub(super) const MOST: u32 = 258;
/// The symbol that ends a block; lengths are behind it.
pub(super) const END: usize = 256;
/// In which order the lengths of the code of lengths are written.
pub(super) const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Steps of which each `group` have a bit more than those before, the first two groups none.
const fn ladder<const N: usize>(first: u32, group: u32) -> [Step; N] {
    let mut steps = [Step { base: first, bits: 0 }; N];
    let mut at = 1;
    let mut index = 1;
    while at < N {
        let last = steps[at - 1];
        let bits = index / group;
        steps[at] = Step { base: last.base + (1 << last.bits), bits: if bits == 0 { 0 } else { bits - 1 } };
        at += 1;
        index += 1;
    }
    steps
}
