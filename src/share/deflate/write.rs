use super::ladder::{DISTANCES, END, LEAST, LENGTHS, MOST, ORDER, Step};

/// Deflates `data`: one block with codes of its own.
pub(in super::super) fn deflate(data: &[u8]) -> Vec<u8> {
    let tokens = tokens(data);
    let (mut literals, mut distances) = ([0; END + 1 + LENGTHS.len()], [0; DISTANCES.len()]);
    literals[END] = 1;
    for token in &tokens {
        literals[token.symbol()] += 1;
        if token.length > 0 {
            distances[step(&DISTANCES, token.value)] += 1;
        }
    }
    let codes = [Code::of(&literals, 15), Code::of(&distances, 15)];
    let mut out = Output::default();
    out.put(0b101, 3);
    describe(&mut out, &codes);
    let [literals, distances] = &codes;
    for token in &tokens {
        let symbol = token.symbol();
        literals.put(&mut out, symbol);
        if token.length > 0 {
            out.rest(LENGTHS[symbol - END - 1], token.length);
            let symbol = step(&DISTANCES, token.value);
            distances.put(&mut out, symbol);
            out.rest(DISTANCES[symbol], token.value);
        }
    }
    literals.put(&mut out, END);
    out.put(0, 7);
    out.bytes
}

/// A byte, or a match.
struct Token {
    /// Of the match; 0 for a byte.
    length: u32,
    /// The byte, or how far back the match is.
    value: u32,
}

impl Token {
    fn symbol(&self) -> usize {
        if self.length > 0 { END + 1 + step(&LENGTHS, self.length) } else { self.value as usize }
    }
}

/// The step that `value` is on.
fn step(steps: &[Step], value: u32) -> usize {
    steps.iter().rposition(|step| step.base <= value).unwrap_or(0)
}

/// How far back a match may be, and one of the least length: further it costs more than its bytes.
const WINDOW: usize = 1 << 15;
const NEAR: usize = 1 << 12;
/// How many places are compared for a match.
const TRIES: usize = 64;
/// Bits of the hash of three bytes.
const HASH: u32 = 15;

/// Where three bytes with the same hash stood last, and before that.
struct Places<'d> {
    data: &'d [u8],
    last: Vec<Option<usize>>,
    before: Vec<Option<usize>>,
}

impl Places<'_> {
    fn hash(&self, at: usize) -> usize {
        let three = self.data.get(at..at + 3).unwrap_or_default();
        let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        (number.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH)) as usize
    }

    fn enter(&mut self, at: usize) {
        let hash = self.hash(at);
        self.before.push(self.last[hash]);
        self.last[hash] = Some(at);
    }

    /// Length and distance of the longest match, 0 where there is none.
    fn longest(&self, at: usize) -> (usize, usize) {
        let rest = self.data.get(at..).unwrap_or_default();
        let rest = rest.get(..MOST as usize).unwrap_or(rest);
        let (mut length, mut distance) = (LEAST as usize - 1, 0);
        let mut place = self.last[self.hash(at)];
        for _ in 0..TRIES {
            let Some(from) = place.filter(|from| at - from <= WINDOW && length < rest.len()) else { break };
            let same = self.data[from..].iter().zip(rest).take_while(|(one, other)| one == other).count();
            if same > length && (same > LEAST as usize || at - from <= NEAR) {
                (length, distance) = (same, at - from);
            }
            place = self.before[from];
        }
        if distance == 0 { (0, 0) } else { (length, distance) }
    }
}

/// Bytes and matches; a match gives way to a longer one that begins a byte later.
fn tokens(data: &[u8]) -> Vec<Token> {
    let mut places = Places { data, last: vec![None; 1 << HASH], before: Vec::with_capacity(data.len()) };
    let mut tokens = Vec::new();
    let (mut at, mut found) = (0, places.longest(0));
    while let Some(byte) = data.get(at) {
        places.enter(at);
        let next = places.longest(at + 1);
        if found.0 == 0 || next.0 > found.0 {
            tokens.push(Token { length: 0, value: u32::from(*byte) });
            (at, found) = (at + 1, next);
            continue;
        }
        let number = |size| u32::try_from(size).unwrap_or(0);
        tokens.push(Token { length: number(found.0), value: number(found.1) });
        let end = at + found.0;
        for inner in at + 1..end {
            places.enter(inner);
        }
        (at, found) = (end, places.longest(end));
    }
    tokens
}

/// Bits in the making, the first the lowest.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl Output {
    fn put(&mut self, value: u32, bits: u32) {
        self.held |= value << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.bytes.push(self.held.to_le_bytes()[0]);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Which of the values of `step` it is.
    fn rest(&mut self, step: Step, value: u32) {
        self.put(value - step.base, step.bits);
    }
}

/// A canonical Huffman code: of each symbol its length and its bits.
struct Code(Vec<(u32, u32)>);

impl Code {
    /// The code for symbols that come so often, none longer than `limit`.
    fn of(counts: &[u32], limit: u32) -> Self {
        let mut counts = counts.to_vec();
        let mut lengths = depths(&counts);
        while lengths.iter().any(|length| *length > limit) {
            // Less uneven counts make less uneven lengths.
            for count in &mut counts {
                *count = *count / 2 + u32::from(*count > 0);
            }
            lengths = depths(&counts);
        }
        let mut codes = vec![(0, 0); lengths.len()];
        let mut next = 0_u32;
        for bits in 1..=limit {
            next <<= 1;
            for (code, _) in codes.iter_mut().zip(&lengths).filter(|(_, length)| **length == bits) {
                *code = (bits, next.reverse_bits() >> (u32::BITS - bits));
                next += 1;
            }
        }
        Self(codes)
    }

    fn put(&self, out: &mut Output, symbol: usize) {
        let (bits, code) = self.0[symbol];
        out.put(code, bits);
    }
}

/// How deep each symbol lies in the Huffman tree; 0 for those that never come.
fn depths(counts: &[u32]) -> Vec<u32> {
    // Symbols, then what joins two nodes; of each its count and what joins it.
    let mut nodes: Vec<(u32, usize)> = Vec::with_capacity(2 * counts.len());
    for count in counts {
        nodes.push((*count, 0));
    }
    loop {
        let mut least = [None; 2];
        for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.0 > 0 && node.1 == 0) {
            let lighter = |other: Option<usize>| other.is_none_or(|other| node.0 < nodes[other].0);
            if lighter(least[0]) {
                least = [Some(index), least[0]];
            } else if lighter(least[1]) {
                least[1] = Some(index);
            }
        }
        let [Some(one), Some(other)] = least else { break };
        let parent = nodes.len();
        nodes.push((nodes[one].0.saturating_add(nodes[other].0), 0));
        nodes[one].1 = parent;
        nodes[other].1 = parent;
    }
    let alone = nodes.len() == counts.len();
    let depth = |symbol: usize| {
        let (mut depth, mut at) = (u32::from(alone && counts[symbol] > 0), nodes[symbol].1);
        while at > 0 {
            (depth, at) = (depth + 1, nodes[at].1);
        }
        depth
    };
    (0..counts.len()).map(depth).collect()
}

/// Writes the lengths of the codes, in a code of their own.
fn describe(out: &mut Output, codes: &[Code]) {
    // Symbols with what tells how often: 16 repeats, 17 and 18 are runs of 0.
    let mut runs: Vec<(usize, u32, u32)> = Vec::new();
    let mut lengths: Vec<u32> = Vec::new();
    for code in codes {
        for (length, _) in &code.0 {
            lengths.push(*length);
        }
    }
    for run in lengths.chunk_by(|one, other| one == other) {
        let (length, mut left) = (run[0], u32::try_from(run.len()).unwrap_or(0));
        if length > 0 {
            runs.push((length as usize, 0, 0));
            left -= 1;
        }
        while left > 0 {
            let (symbol, least, bits) = match (length, left) {
                (_, ..3) => (length as usize, 1, 0),
                (0, ..11) => (17, 3, 3),
                (0, _) => (18, 11, 7),
                _ => (16, 3, 2),
            };
            let times = left.min(least + (1 << bits) - 1);
            runs.push((symbol, times - least, bits));
            left -= times;
        }
    }
    let mut counts = [0; ORDER.len()];
    for (symbol, ..) in &runs {
        counts[*symbol] += 1;
    }
    let code = Code::of(&counts, 7);
    out.put(29, 5);
    out.put(29, 5);
    out.put(15, 4);
    for &symbol in &ORDER {
        out.put(code.0[symbol].0, 3);
    }
    for (symbol, rest, bits) in runs {
        code.put(out, symbol);
        out.put(rest, bits);
    }
}
