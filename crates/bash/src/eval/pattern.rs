//! Glob patterns: `*`, `?`, `[...]`; a backslash makes the next character literal.

use super::regex::{Regex, Syntax};

/// Products of text and pattern lengths beyond which matching is refused. Unit: square byte.
pub(crate) const MATCH_COST: usize = 1 << 20;

/// Whether the whole text matches.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    matches_at(&pattern, &text)
}

/// Whether the whole text matches a pattern that may have groups, optionally ignoring case; `None` if that cannot be
/// decided here.
pub(crate) fn decided(pattern: &str, text: &str, any_case: bool) -> Option<bool> {
    if is_extended(pattern) {
        // Everything except these, if the pattern is nothing but the group.
        let others = pattern.strip_prefix("!(").and_then(|rest| rest.strip_suffix(')'));
        if let Some(others) = others.filter(|others| !others.contains(['(', ')'])) {
            return decided(&format!("@({others})"), text, any_case).map(|matches| !matches);
        }
        return Regex::new(&regex_of(pattern)?, Syntax::Perl, any_case)?.is_match(text);
    }
    if text.len().saturating_mul(pattern.len()) > MATCH_COST {
        return None;
    }
    Some(if any_case {
        matches(&pattern.to_lowercase(), &text.to_lowercase())
    } else {
        matches(pattern, text)
    })
}

fn matches_at(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The last `*`, and how much it has taken so far. Only the last needs retrying: whatever more an earlier one
    // could take, a later one can too. So the time is at most the product of both lengths.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        match one(pattern, p, text[t]) {
            Some(next) => {
                p = next;
                t += 1;
            }
            None => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    p = *after_star;
                    t = *from;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or(&[]).iter().all(|c| *c == '*')
}

/// Matches one character; returns where the pattern continues if it matches.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '\\' if at + 1 < pattern.len() => (pattern[at + 1] == c).then_some(at + 2),
        '[' => match class(pattern, at, c) {
            Some((found, next)) => found.then_some(next),
            // Never closed: an ordinary bracket.
            None => (c == '[').then_some(at + 1),
        },
        literal => (literal == c).then_some(at + 1),
    }
}

/// Whether a bracket expression contains a character, and where it ends; `None` if it is not closed.
pub(crate) fn class(pattern: &[char], at: usize, c: char) -> Option<(bool, usize)> {
    let mut index = at + 1;
    let negated = matches!(pattern.get(index), Some('!' | '^'));
    index += usize::from(negated);
    let first = index;
    let mut found = false;
    loop {
        let low = *pattern.get(index)?;
        // `[]a]`: a bracket at the start stands for itself.
        if low == ']' && index > first {
            return Some((found != negated, index + 1));
        }
        if low == '[' && pattern.get(index + 1) == Some(&':') {
            let close = (index + 2..pattern.len().min(index + 12))
                .find(|end| pattern[*end] == ':' && pattern.get(end + 1) == Some(&']'))?;
            let name: String = pattern[index + 2..close].iter().collect();
            found |= in_class(&name, c);
            index = close + 2;
            continue;
        }
        if pattern.get(index + 1) == Some(&'-') && pattern.get(index + 2).is_some_and(|high| *high != ']') {
            found |= low <= c && c <= pattern[index + 2];
            index += 3;
        } else {
            found |= low == c;
            index += 1;
        }
    }
}

fn in_class(name: &str, c: char) -> bool {
    match name {
        "digit" => c.is_ascii_digit(),
        "alpha" => c.is_ascii_alphabetic(),
        "alnum" => c.is_ascii_alphanumeric(),
        "space" => c.is_ascii_whitespace(),
        "upper" => c.is_ascii_uppercase(),
        "lower" => c.is_ascii_lowercase(),
        "punct" => c.is_ascii_punctuation(),
        "xdigit" => c.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Whether it has one of the groups of `shopt -s extglob`: `@(a|b)`, `+([0-9])`.
pub(crate) fn is_extended(pattern: &str) -> bool {
    ["?(", "*(", "+(", "@(", "!("].iter().any(|group| pattern.contains(group))
}

/// A pattern with such groups as a regular expression of the whole text; `None` if it is not supported, like `!(a)`.
pub(crate) fn regex_of(pattern: &str) -> Option<String> {
    let signs: Vec<char> = pattern.chars().collect();
    let mut out = "\\A".to_owned();
    let mut ends = Vec::new();
    let mut at = 0;
    while let Some(c) = signs.get(at) {
        let opens = signs.get(at + 1) == Some(&'(');
        at += 1;
        match c {
            '?' | '*' | '+' | '@' if opens => {
                at += 1;
                out.push_str("(?:");
                ends.push(if *c == '@' { "" } else { pattern_sign(*c) });
            }
            '!' if opens => return None,
            ')' if !ends.is_empty() => {
                out.push(')');
                out.push_str(ends.pop().unwrap_or(""));
            }
            '|' if !ends.is_empty() => out.push('|'),
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => {
                let (_, end) = class(&signs, at - 1, 'x')?;
                let text: String = signs.get(at..end)?.iter().collect();
                let (start, rest) = match text.strip_prefix('!') {
                    Some(rest) => ("[^", rest),
                    None => ("[", text.as_str()),
                };
                if rest.contains(['\\', '&', '~']) {
                    return None;
                }
                out.push_str(start);
                out.push_str(rest);
                at = end;
            }
            '\\' => {
                out.push_str(&regex_lite::escape(&signs.get(at)?.to_string()));
                at += 1;
            }
            literal => out.push_str(&regex_lite::escape(&literal.to_string())),
        }
        if ends.len() > 8 {
            return None;
        }
    }
    out.push_str("\\z");
    ends.is_empty().then_some(out)
}

fn pattern_sign(sign: char) -> &'static str {
    match sign {
        '?' => "?",
        '*' => "*",
        _ => "+",
    }
}

/// Appends the text with all pattern characters escaped.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
}

/// The length in bytes of the shortest or longest start of the text that matches.
pub(crate) fn prefix_length(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let pattern: Vec<char> = pattern.chars().collect();
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut end) = (None, 0);
    for count in 0..=chars.len() {
        if matches_at(&pattern, chars.get(..count)?) {
            found = Some(end);
            if !longest {
                break;
            }
        }
        end += chars.get(count).map_or(0, |c| c.len_utf8());
    }
    found
}

/// Where the shortest or longest end of the text that matches starts, in bytes.
pub(crate) fn suffix_start(pattern: &str, text: &str, longest: bool) -> Option<usize> {
    let pattern: Vec<char> = pattern.chars().collect();
    let chars: Vec<char> = text.chars().collect();
    // From the left the suffixes grow shorter: the first that matches is the longest, the last the shortest.
    let (mut found, mut start) = (None, 0);
    for count in 0..=chars.len() {
        if matches_at(&pattern, chars.get(count..)?) {
            found = Some(start);
            if longest {
                break;
            }
        }
        start += chars.get(count).map_or(0, |c| c.len_utf8());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{matches, prefix_length, suffix_start};

    #[test]
    fn globs_match_as_in_bash() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*B", "13B", true),
            ("[0-9]*", "7B", true),
            ("[!0-9]*", "7B", false),
            ("a?c", "abc", true),
            ("a\\*c", "abc", false),
            ("a\\*c", "a*c", true),
            ("*a*b*c*", "xxaxxbxx", false),
            ("[[:digit:]]", "4", true),
            ("[a", "[a", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} against {text}");
        }
        assert_eq!(prefix_length("*/", "a/b/c", false), Some(2));
        assert_eq!(prefix_length("*/", "a/b/c", true), Some(4));
        assert_eq!(suffix_start("/*", "a/b/c", false), Some(3));
        assert_eq!(suffix_start("/*", "a/b/c", true), Some(1));
    }
}
