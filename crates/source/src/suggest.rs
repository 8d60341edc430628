/// Longest word compared, in bytes; the longest Megatron flag has 60.
const LONGEST_WORD: usize = 80;

/// The candidate nearest to a misspelt word, if one is near: at most one edit per four letters, and at least one
/// allowed. `-` and `_` count as the same letter, and case is ignored.
pub fn suggest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A single letter is near everything.
    if word.len() < 2 || word.len() > LONGEST_WORD {
        return None;
    }
    let letters = count(word);
    let mut best = None;
    // One more than the maximum number of edits; each nearer candidate lowers it, so later comparisons end sooner.
    let mut bound = (word.len() / 4).max(1) + 1;
    for candidate in candidates {
        if candidate.len() > LONGEST_WORD || candidate.len().abs_diff(word.len()) >= bound {
            continue;
        }
        // A cheap lower bound of the distance that avoids the full computation for most of several hundred
        // candidates.
        if strangers(&letters, candidate) >= bound {
            continue;
        }
        let distance = edits(word.as_bytes(), candidate.as_bytes(), bound);
        if distance < bound {
            bound = distance;
            best = Some(candidate);
        }
    }
    best
}

/// How often each letter occurs in a word, indexed by its low bits.
fn count(word: &str) -> [i8; 32] {
    let mut letters = [0_i8; 32];
    for byte in word.bytes() {
        // The low five bits map some symbols and letters to the same slot, which can only weaken the bound, never
        // invalidate it.
        let slot = &mut letters[usize::from(fold(byte) & 31)];
        *slot = slot.saturating_add(1);
    }
    letters
}

/// A lower bound on the edit distance: letters that one of two words has and the other lacks.
fn strangers(letters: &[i8; 32], candidate: &str) -> usize {
    let (mut more, mut fewer) = (0_usize, 0_usize);
    for (left, right) in letters.iter().zip(count(candidate)) {
        let apart = usize::from(left.abs_diff(right));
        if *left > right {
            more += apart;
        } else {
            fewer += apart;
        }
    }
    // One replacement removes a letter and adds another.
    more.max(fewer)
}

/// Edit distance with transpositions; gives up and returns `bound` once the distance cannot be below `bound`.
fn edits(left: &[u8], right: &[u8], bound: usize) -> usize {
    // Three rows of the table: a transposition looks two rows back.
    let mut before = [0_usize; LONGEST_WORD + 1];
    let mut above = [0_usize; LONGEST_WORD + 1];
    let mut row = [0_usize; LONGEST_WORD + 1];
    for (index, cell) in above.iter_mut().enumerate() {
        *cell = index;
    }
    for (i, a) in left.iter().enumerate() {
        row[0] = i + 1;
        let mut least = row[0];
        for (j, b) in right.iter().enumerate() {
            let mut cost = above[j] + usize::from(!same(*a, *b));
            cost = cost.min(above[j + 1] + 1).min(row[j] + 1);
            // `--sqe-length`: a swap is one edit, not two.
            if i > 0 && j > 0 && same(*a, right[j - 1]) && same(left[i - 1], *b) {
                cost = cost.min(before[j - 1] + 1);
            }
            row[j + 1] = cost;
            least = least.min(cost);
        }
        // Row minima never decrease, so the distance is at least the minimum of any row.
        if least >= bound {
            return bound;
        }
        before = above;
        above = row;
    }
    above[right.len()]
}

fn same(a: u8, b: u8) -> bool {
    fold(a) == fold(b)
}

fn fold(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let known = ["--num-layers", "--hidden-size", "--seq-length", "--bf16", "--fp16"];
        assert_eq!(suggest(word, known), expected);
    }

    #[test]
    fn near_words_are_found_and_far_ones_not() {
        check("--num_layer", Some("--num-layers"));
        check("--hiden-size", Some("--hidden-size"));
        check("--sqe-length", Some("--seq-length"));
        check("--bf61", Some("--bf16"));
        check("--wandb-project", None);
        check("", None);
        check(&"x".repeat(10_000), None);
    }
}
