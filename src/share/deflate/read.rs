use super::ladder::{DISTANCES, END, LENGTHS, ORDER, Step};

/// Undoes deflate; nothing where `data` is damaged or makes more than `limit` bytes.
pub(in super::super) fn inflate(data: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut input = Input { data, at: 0 };
    let mut out = Vec::new();
    loop {
        let last = input.bits(1)? == 1;
        match input.bits(2)? {
            0 => stored(&mut input, &mut out)?,
            1 => {
                let mut lengths = [8; 288 + 30];
                lengths[144..256].fill(9);
                lengths[256..280].fill(7);
                lengths[288..].fill(5);
                coded(&mut input, &mut out, limit, lengths.split_at(288))?;
            }
            2 => {
                let (lengths, literals) = code_lengths(&mut input)?;
                coded(&mut input, &mut out, limit, lengths.split_at_checked(literals)?)?;
            }
            _ => return None,
        }
        if out.len() > limit {
            return None;
        }
        if last {
            return Some(out);
        }
    }
}

struct Input<'d> {
    data: &'d [u8],
    /// In bits.
    at: usize,
}

impl Input<'_> {
    fn bits(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for place in 0..count {
            let byte = u32::from(*self.data.get(self.at / 8)?);
            value |= (byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(value)
    }

    fn count(&mut self, bits: u32, least: usize) -> Option<usize> {
        Some(usize::try_from(self.bits(bits)?).ok()? + least)
    }

    fn symbol(&mut self, code: &Code) -> Option<usize> {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for count in code.counts {
            value = value * 2 + self.count(1, 0)?;
            first *= 2;
            if value < first + count {
                return code.symbols.get(index + value - first).copied();
            }
            index += count;
            first += count;
        }
        None
    }

    fn step(&mut self, steps: &[Step], symbol: usize) -> Option<usize> {
        let step = steps.get(symbol)?;
        self.count(step.bits, usize::try_from(step.base).ok()?)
    }
}

/// A canonical Huffman code.
struct Code {
    /// How many symbols have 1, 2, … bits.
    counts: [usize; 15],
    /// The symbols by their codes.
    symbols: Vec<usize>,
}

impl Code {
    fn of(lengths: &[u8]) -> Option<Self> {
        let mut code = Self { counts: [0; 15], symbols: Vec::new() };
        let mut left = 1_usize;
        for (count, bits) in code.counts.iter_mut().zip(1..) {
            let own = (0..lengths.len()).filter(|symbol| lengths[*symbol] == bits);
            code.symbols.extend(own);
            *count = code.symbols.len();
        }
        for index in (0..15).rev() {
            code.counts[index] -= if index > 0 { code.counts[index - 1] } else { 0 };
        }
        for count in code.counts {
            left = (left * 2).checked_sub(count)?;
        }
        Some(code)
    }
}

/// A block as it is.
fn stored(input: &mut Input<'_>, out: &mut Vec<u8>) -> Option<()> {
    input.at = input.at.next_multiple_of(8);
    let length = input.count(16, 0)?;
    if input.count(16, 0)? != length ^ 0xffff {
        return None;
    }
    let start = input.at / 8;
    out.extend_from_slice(input.data.get(start..start + length)?);
    input.at += length * 8;
    Some(())
}

/// The lengths of a block's two codes, and how many are of the first.
fn code_lengths(input: &mut Input<'_>) -> Option<(Vec<u8>, usize)> {
    let literals = input.count(5, END + 1)?;
    let all = input.count(5, 1)? + literals;
    let mut own = [0; ORDER.len()];
    for place in ORDER.iter().take(input.count(4, 4)?) {
        own[*place] = u8::try_from(input.bits(3)?).ok()?;
    }
    let code = Code::of(&own)?;
    let mut lengths = Vec::with_capacity(all);
    while lengths.len() < all {
        let (length, times) = match input.symbol(&code)? {
            16 => (*lengths.last()?, input.count(2, 3)?),
            17 => (0, input.count(3, 3)?),
            18 => (0, input.count(7, 11)?),
            length => (u8::try_from(length).ok()?, 1),
        };
        lengths.resize(lengths.len() + times, length);
    }
    (lengths.len() == all).then_some((lengths, literals))
}

/// A block in two codes, of literals with lengths and of distances.
fn coded(
    input: &mut Input<'_>,
    out: &mut Vec<u8>,
    limit: usize,
    (literals, distances): (&[u8], &[u8]),
) -> Option<()> {
    let (literals, distances) = (Code::of(literals)?, Code::of(distances)?);
    loop {
        let symbol = input.symbol(&literals)?;
        if let Ok(literal) = u8::try_from(symbol) {
            out.push(literal);
        } else if symbol == END {
            return Some(());
        } else {
            let length = input.step(&LENGTHS, symbol - END - 1)?;
            let symbol = input.symbol(&distances)?;
            let distance = input.step(&DISTANCES, symbol)?;
            let start = out.len().checked_sub(distance)?;
            for at in start..start + length {
                out.push(out[at]);
            }
        }
        if out.len() > limit {
            return None;
        }
    }
}
