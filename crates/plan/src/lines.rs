//! Many short texts held as the lines of one.

/// Where each line of `text` ends.
pub(super) const fn ends<const N: usize>(text: &str) -> [u16; N] {
    let bytes = text.as_bytes();
    let (mut ends, mut line, mut at) = ([0; N], 0, 0_u16);
    while line < N {
        if bytes[at as usize] == b'\n' {
            ends[line] = at;
            line += 1;
        }
        at += 1;
    }
    ends
}

/// A line of `text` by its number.
pub(super) fn piece(text: &'static str, ends: &[u16], line: usize) -> &'static str {
    let end = |line: usize| ends.get(line).map(|end| usize::from(*end));
    let start = line.checked_sub(1).and_then(end).map_or(0, |end| end + 1);
    end(line).and_then(|end| text.get(start..end)).unwrap_or_default()
}
