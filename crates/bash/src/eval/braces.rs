//! `{a,b}` and `{1..4}` within one literal piece of a word.

use super::super::limits;
use super::super::tree::Part;

/// Longest piece in which braces are looked at, in bytes.
const LONGEST: usize = 2048;

/// The first piece that contains a brace expression, and the texts it expands to.
pub(crate) fn alternatives(parts: &[Part]) -> Option<(usize, Vec<String>)> {
    parts.iter().enumerate().find_map(|(at, part)| match part {
        Part::Text { text, quoted: false, .. } if text.len() <= LONGEST && text.contains('{') => {
            let mut out = Vec::new();
            expand(text, 0, &mut out);
            (out.len() != 1 || out.first() != Some(text)).then_some((at, out))
        }
        _ => None,
    })
}

// The leftmost varies slowest, as in bash: {a,b}{1,2} is a1 a2 b1 b2. One more than may be kept is made, so that whoever takes them
// sees that there are too many.
fn expand(text: &str, depth: u32, out: &mut Vec<String>) {
    if out.len() > limits::WORDS {
        return;
    }
    let Some((open, close, items)) = group(text).filter(|_| depth < 12) else {
        out.push(text.to_owned());
        return;
    };
    let (before, after) = (text.get(..open).unwrap_or(""), text.get(close + 1..).unwrap_or(""));
    let mut tails = Vec::new();
    // Expanded once for all items. Braces multiply, so the bound on words is checked before each word is made.
    expand(after, depth + 1, &mut tails);
    for item in items {
        let mut inner = Vec::new();
        expand(&item, depth + 1, &mut inner);
        for middle in &inner {
            for tail in &tails {
                if out.len() > limits::WORDS {
                    return;
                }
                out.push(format!("{before}{middle}{tail}"));
            }
        }
    }
}

/// The first brace expression: where it opens and closes, and its alternatives.
fn group(text: &str) -> Option<(usize, usize, Vec<String>)> {
    let bytes = text.as_bytes();
    for (open, _) in text.match_indices('{').take(64) {
        // In bash `${` does not open a brace expression.
        if open > 0 && bytes.get(open - 1) == Some(&b'$') {
            continue;
        }
        let Some((close, commas)) = closing(bytes, open) else { continue };
        let inner = text.get(open + 1..close).unwrap_or("");
        if !commas.is_empty() {
            let mut items = Vec::new();
            let mut start = open + 1;
            for comma in commas.into_iter().chain([close]) {
                items.push(text.get(start..comma).unwrap_or("").to_owned());
                start = comma + 1;
            }
            return Some((open, close, items));
        }
        if let Some(items) = sequence(inner) {
            return Some((open, close, items));
        }
    }
    None
}

fn closing(bytes: &[u8], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut level = 0_u32;
    let mut commas = Vec::new();
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => level += 1,
            b'}' if level == 1 => return Some((at, commas)),
            b'}' => level -= 1,
            b',' if level == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}

/// `1..4`, `01..10`, `a..e`, `0..8..2`
fn sequence(inner: &str) -> Option<Vec<String>> {
    let mut ends = inner.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    if ends.next().is_some() {
        return None;
    }
    let step = step.map_or(Some(1), |step| step.parse::<i64>().ok())?.unsigned_abs().max(1);
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        // If one end has a leading zero, bash pads all numbers to the longer end's width.
        let padded = |end: &str| end.trim_start_matches('-').starts_with('0') && end.len() > 1;
        let width = if padded(first) || padded(last) { first.len().max(last.len()) } else { 0 };
        let count = (to.abs_diff(from) / step).min(limits::WORDS as u64);
        let number = |turn: u64| {
            let distance = i64::try_from(turn * step).unwrap_or(i64::MAX);
            if to >= from { from.saturating_add(distance) } else { from.saturating_sub(distance) }
        };
        let mut all = Vec::new();
        for turn in 0..=count {
            let number = number(turn);
            let digits = number.unsigned_abs().to_string();
            let sign = if number < 0 { "-" } else { "" };
            let zeros = "0".repeat(width.saturating_sub(sign.len() + digits.len()));
            all.push(format!("{sign}{zeros}{digits}"));
        }
        return Some(all);
    }
    let (mut from, mut to) = (first.chars(), last.chars());
    let (low, high) = (from.next()?, to.next()?);
    if from.next().is_some()
        || to.next().is_some()
        || !low.is_ascii_alphabetic()
        || !high.is_ascii_alphabetic()
    {
        return None;
    }
    let (low, high) = (u8::try_from(low).ok()?, u8::try_from(high).ok()?);
    let mut all = Vec::new();
    let mut distance = 0;
    while distance <= u64::from(low.abs_diff(high)) {
        let by = u8::try_from(distance).ok()?;
        let letter = if high < low { low - by } else { low + by };
        all.push(char::from(letter).to_string());
        // 256 leaves the alphabet already; a step of 2^63 would overflow the sum.
        distance += step.min(256);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn braces_multiply_as_in_bash() {
        for (text, expected) in [
            ("n{1..3}", "n1 n2 n3"),
            ("{01..03}", "01 02 03"),
            ("{3..1}", "3 2 1"),
            ("{0..8..4}", "0 4 8"),
            ("{a..c}", "a b c"),
            ("a{b,c{d,e}}f", "abf acdf acef"),
            ("{a,b}{1,2}", "a1 a2 b1 b2"),
            ("{}", "{}"),
            ("{a}", "{a}"),
            ("{x", "{x"),
        ] {
            let mut out = Vec::new();
            expand(text, 0, &mut out);
            assert_eq!(out.join(" "), expected, "{text}");
        }
        let mut bomb = Vec::new();
        expand(&"{a,b}".repeat(40), 0, &mut bomb);
        assert!(bomb.len() <= crate::limits::WORDS + 1);
    }
}
