//! Regular expressions as in `=~`, `grep` and `sed`. POSIX's two syntaxes are translated for regex-lite, which
//! matches in time linear in the text; POSIX's leftmost-longest rule is implemented here.

use std::ops::Range;

use regex_lite::RegexBuilder;

/// Longest pattern read. Unit: byte.
const MAX_PATTERN: usize = 2_000;
/// Deepest nesting of groups; regex-lite itself nests a few levels for each.
const MAX_DEPTH: usize = 8;
/// Largest compiled expression: `(a{200}){200}` would take megabytes. Unit: byte.
const MAX_COMPILED: usize = 1 << 15;
/// Greatest product of the text's length, the number of passes over it, and the pattern's length. Unit: square byte.
const MAX_COST: usize = 1 << 20;

/// Which characters of a pattern are literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// `grep` and `sed` without an option: groups, alternatives and `+` need a backslash.
    Basic,
    /// `=~`, `grep -E`, `sed -E`.
    Extended,
    /// `grep -P`; the first of several matches counts, as in regex-lite.
    Perl,
    /// `grep -F`: every character is literal.
    Fixed,
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Regex {
    anywhere: regex_lite::Regex,
    /// For patterns where regex-lite's match may not be the longest: expressions that must match a piece of a line in
    /// full, by whether `^` holds at its start and `$` at its end.
    whole: Option<[[regex_lite::Regex; 2]; 2]>,
    length: usize,
}

impl Regex {
    /// `None` if the pattern is not supported, in which case its matches are unknown.
    pub(crate) fn new(pattern: &str, syntax: Syntax, any_case: bool) -> Option<Self> {
        if pattern.len() > MAX_PATTERN {
            return None;
        }
        let build = |text: &str| build(text, any_case);
        let length = pattern.len().max(1);
        let posix = match syntax {
            Syntax::Perl => return Some(Self { anywhere: build(pattern)?, whole: None, length }),
            Syntax::Fixed => {
                return Some(Self { anywhere: build(&regex_lite::escape(pattern))?, whole: None, length });
            }
            Syntax::Basic | Syntax::Extended => |start, end| {
                let mut reader = PatternParser::new(pattern, syntax, start, end);
                reader.read()?;
                Some((reader.out, reader.lengths))
            },
        };
        let (text, lengths) = posix(true, true)?;
        // A single repetition is greedy and therefore longest; with several, or with alternatives, the match may not
        // be the longest.
        let whole = if lengths > 1 {
            let all = |start, end| build(&format!("\\A(?:{})\\z", posix(start, end)?.0));
            Some([[all(false, false)?, all(false, true)?], [all(true, false)?, all(true, true)?]])
        } else {
            None
        };
        Some(Self { anywhere: build(&text)?, whole, length })
    }

    /// Whether it matches somewhere; `None` if deciding would take too long.
    pub(crate) fn is_match(&self, text: &str) -> Option<bool> {
        (text.len().saturating_mul(self.length) <= MAX_COST).then(|| self.anywhere.is_match(text))
    }

    /// The texts of a match of this extended pattern and of its groups; `None` if POSIX might assign them
    /// differently.
    pub(crate) fn groups(&self, pattern: &str, text: &str, any_case: bool) -> Option<Vec<String>> {
        let mut reader = PatternParser::new(pattern, Syntax::Extended, true, true);
        reader.group = "(";
        reader.read()?;
        let found = build(&reader.out, any_case)?.captures(text).filter(|_| !pattern.contains('|'))?;
        let whole = found.get(0)?.range();
        let taken = |group| found.get(group).map_or("", |part| part.as_str()).to_owned();
        (self.find(text, 0)?? == whole).then(|| (0..found.len()).map(taken).collect())
    }

    /// The leftmost-longest match from a byte on; the outer `None` if deciding would take too long.
    pub(crate) fn find(&self, text: &str, from: usize) -> Option<Option<Range<usize>>> {
        if text.len().saturating_mul(self.length) > MAX_COST {
            return None;
        }
        let Some(found) = self.anywhere.find_at(text, from) else { return Some(None) };
        let (start, mut end) = (found.start(), found.end());
        if let Some(whole) = self.whole.as_ref() {
            // Whether `^` and `$` hold at its ends must be given explicitly: a piece cut out of a line has lost its
            // context.
            let [inside, to_end] = &whole[usize::from(start == 0)];
            let rest = text.get(start..)?;
            if rest.len().saturating_mul(rest.len()).saturating_mul(self.length) > MAX_COST {
                return None;
            }
            // From the longest down to what regex-lite found; each attempt scans the piece, hence the square in the
            // cost.
            let longer = rest.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            for length in longer.take_while(|length| start + length > end) {
                let all = if length == rest.len() { to_end } else { inside };
                if all.is_match(rest.get(..length)?) {
                    end = start + length;
                    break;
                }
            }
        }
        Some(Some(start..end))
    }
}

fn build(text: &str, any_case: bool) -> Option<regex_lite::Regex> {
    RegexBuilder::new(text)
        .case_insensitive(any_case)
        .dot_matches_new_line(true)
        .size_limit(MAX_COMPILED)
        .build()
        .ok()
}

/// Never matches: requires a word boundary and its absence at once.
const NEVER: &str = "(?:\\b\\B)";

/// Writes a POSIX pattern in regex-lite's syntax.
struct PatternParser<'p> {
    signs: std::iter::Peekable<std::str::Chars<'p>>,
    syntax: Syntax,
    /// Whether `^` and `$` hold at the ends of the text.
    start: bool,
    end: bool,
    depth: usize,
    /// Whether the next character is the first of the pattern, a group or an alternative.
    first: bool,
    /// Whether a repetition is allowed here.
    repeatable: bool,
    /// How many repetitions there are; an alternation counts as two.
    lengths: usize,
    /// What opens a group.
    group: &'static str,
    out: String,
}

impl<'p> PatternParser<'p> {
    fn new(pattern: &'p str, syntax: Syntax, start: bool, end: bool) -> Self {
        Self {
            signs: pattern.chars().peekable(),
            syntax,
            start,
            end,
            depth: 0,
            first: true,
            repeatable: false,
            lengths: 0,
            group: "(?:",
            out: String::new(),
        }
    }

    fn read(&mut self) -> Option<()> {
        while let Some(sign) = self.signs.next() {
            let (sign, escaped) = if sign == '\\' { (self.signs.next()?, true) } else { (sign, false) };
            let first = std::mem::take(&mut self.first);
            // Characters that are special with a backslash in one syntax are special without it in the other.
            let special = escaped == (self.syntax == Syntax::Basic);
            match sign {
                '(' if special => self.open()?,
                ')' if special => self.close()?,
                '|' if special => self.choice(),
                '+' | '?' if special => self.repeat(&sign.to_string())?,
                '{' if special => {
                    let counts = self.counts()?;
                    self.repeat(&counts)?;
                }
                // An unmatched closing brace.
                '}' if special && escaped => return None,
                '*' if !(escaped || first && self.syntax == Syntax::Basic) => self.repeat("*")?,
                '^' if !escaped && (first || self.syntax == Syntax::Extended) => self.start_of_line(),
                '$' if !escaped && (self.is_last() || self.syntax == Syntax::Extended) => self.end_of_line(),
                '.' if !escaped => self.atom("."),
                '[' if !escaped => self.class()?,
                'w' if escaped => self.atom("[0-9A-Za-z_]"),
                'W' if escaped => self.atom("[^0-9A-Za-z_]"),
                's' if escaped => self.atom("[[:space:]]"),
                'S' if escaped => self.atom("[^[:space:]]"),
                // `\1`, `\b`, `\d`: back references and extensions, not a literal.
                _ if escaped && sign.is_ascii_alphanumeric() => return None,
                literal => self.atom(&regex_lite::escape(literal.encode_utf8(&mut [0; 4]))),
            }
        }
        (self.depth == 0).then_some(())
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.repeatable = true;
    }

    fn start_of_line(&mut self) {
        self.out.push_str(if self.start { "^" } else { NEVER });
        self.repeatable = false;
        // A `*` after it is literal in one syntax and undefined in the other.
        if self.syntax == Syntax::Basic && self.signs.next_if_eq(&'*').is_some() {
            self.atom("\\*");
        }
    }

    fn end_of_line(&mut self) {
        self.out.push_str(if self.end { "$" } else { NEVER });
        self.repeatable = false;
    }

    fn open(&mut self) -> Option<()> {
        self.depth += 1;
        self.out.push_str(self.group);
        (self.first, self.repeatable) = (true, false);
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn close(&mut self) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        self.atom(")");
        Some(())
    }

    fn choice(&mut self) {
        self.out.push('|');
        // Its alternatives may differ in length even on their own.
        self.lengths += 2;
        (self.first, self.repeatable) = (true, false);
    }

    /// Two repetitions in a row would be something else in regex-lite.
    fn repeat(&mut self, sign: &str) -> Option<()> {
        self.lengths += 1;
        self.out.push_str(sign);
        std::mem::take(&mut self.repeatable).then_some(())
    }

    /// `2`, `2,` or `2,3` after an opening brace, up to the closing one.
    fn counts(&mut self) -> Option<String> {
        let mut counts = String::from("{");
        loop {
            match self.signs.next()? {
                digit @ ('0'..='9' | ',') => counts.push(digit),
                '\\' if self.syntax == Syntax::Basic && self.signs.next() == Some('}') => break,
                '}' if self.syntax == Syntax::Extended => break,
                _ => return None,
            }
        }
        counts.push('}');
        (!counts.starts_with("{,")).then_some(counts)
    }

    /// Whether only the end of a group or alternative follows.
    fn is_last(&self) -> bool {
        let mut rest = self.signs.clone();
        match rest.next() {
            None => true,
            Some('\\') => matches!(rest.next(), Some(')' | '|')),
            Some(_) => false,
        }
    }

    /// A bracket expression, in which a backslash is literal.
    fn class(&mut self) -> Option<()> {
        let mut text = String::from("[");
        if self.signs.next_if_eq(&'^').is_some() {
            text.push('^');
        }
        let mut first = true;
        loop {
            match self.signs.next()? {
                ']' if !first => break,
                '[' if self.signs.next_if_eq(&':').is_some() => {
                    let mut name = String::new();
                    while let Some(letter) = self.signs.next_if(char::is_ascii_lowercase) {
                        name.push(letter);
                    }
                    if self.signs.next() != Some(':') || self.signs.next() != Some(']') {
                        return None;
                    }
                    text.push_str(&format!("[:{name}:]"));
                }
                // Collating symbols and classes of equivalent letters.
                '[' if matches!(self.signs.peek(), Some('.' | '=')) => return None,
                '-' if !first && self.signs.peek() != Some(&']') => text.push('-'),
                // regex-lite has `&&` and `~~` in brackets, POSIX does not.
                sign @ ('\\' | '[' | ']' | '^' | '-' | '&' | '~') => text.extend(['\\', sign]),
                sign => text.push(sign),
            }
            first = false;
        }
        text.push(']');
        self.atom(&text);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Regex, Syntax};

    #[test]
    fn expressions_match_as_in_bash() {
        for (pattern, text, expected) in [
            ("^[0-9]+$", "1024", Some(true)),
            ("^[0-9]+$", "12a", Some(false)),
            ("^(7B|13B)$", "13B", Some(true)),
            ("moe", "qwen-moe-57b", Some(true)),
            ("^--?[a-z]+(=.*)?$", "--tp=4", Some(true)),
            ("a{2,3}b", "xaab", Some(true)),
            ("(a*)*b", "aaaaaaaaaaaaaaaaaaaaac", Some(false)),
            ("^[^]a-]$", "]", Some(false)),
            ("^[]a\\.-]+$", "]-\\.a", Some(true)),
            ("^[[:digit:]]{3}$", "123", Some(true)),
            ("^a\\.b\\s\\w$", "a.b c", Some(true)),
            ("\\d", "1", None),
            ("(", "1", None),
            (")", "1", None),
            ("a**", "a", None),
            ("a+?", "a", None),
            ("(?i)a", "a", None),
            ("a{,3}", "a", None),
            ("a{1000000}", "a", None),
            ("[[:no:]]", "a", None),
            ("[[.hyphen.]]", "-", None),
        ] {
            let found = Regex::new(pattern, Syntax::Extended, false).and_then(|regex| regex.is_match(text));
            assert_eq!(found, expected, "{pattern} in {text}");
        }
    }

    #[test]
    fn basic_expressions_have_their_signs_behind_backslashes() {
        for (pattern, text, expected) in [
            ("a+(b)", "a+(b)", Some(true)),
            ("a+(b)", "aab", Some(false)),
            ("\\(a\\|b\\)\\{2\\}c", "xabc", Some(true)),
            ("*a", "*a", Some(true)),
            ("^*a", "*a", Some(true)),
            ("a^b$c", "a^b$c", Some(true)),
            ("{{LAYERS}}", "n: {{LAYERS}}", Some(true)),
            ("${X}", "${X}", Some(true)),
            ("\\(a", "a", None),
        ] {
            let found = Regex::new(pattern, Syntax::Basic, false).and_then(|regex| regex.is_match(text));
            assert_eq!(found, expected, "{pattern} in {text}");
        }
    }

    #[test]
    fn the_longest_of_the_leftmost_matches_counts() {
        for (pattern, text, expected) in [
            ("a|ab|abc", "xabcd", Some(1..4)),
            ("a?(ab)?", "ab", Some(0..2)),
            ("(a|ab)(c|bcd)", "abcd", Some(0..4)),
            ("^(a|ab)", "ab", Some(0..2)),
            ("(a|ab)$", "xab", Some(1..3)),
            ("(a|ab$)", "abc", Some(0..1)),
            ("[0-9]+", "tp12x", Some(2..4)),
            ("é|éü", "xéü", Some(1..5)),
            ("z", "abc", None),
        ] {
            let regex = Regex::new(pattern, Syntax::Extended, false).expect("a readable pattern");
            assert_eq!(regex.find(text, 0), Some(expected), "{pattern} in {text}");
        }
    }

    #[test]
    fn other_ways_to_match() {
        let find = |pattern, syntax, any_case, text: &str| {
            Regex::new(pattern, syntax, any_case).and_then(|regex| regex.find(text, 0)?)
        };
        assert_eq!(find("a.b", Syntax::Fixed, false, "axb a.b"), Some(4..7));
        assert_eq!(find("\\d+(?=x)", Syntax::Perl, false, "12x"), None);
        assert_eq!(find("\\d+", Syntax::Perl, false, "x12"), Some(1..3));
        assert_eq!(find("LLAMA", Syntax::Basic, true, "my-llama"), Some(3..8));
    }

    #[test]
    fn hostile_patterns_are_given_up_at_once() {
        let long = "a".repeat(1 << 20);
        for pattern in ["(a*)*(a*)*(a*)*b", "((a|aa)*)*b", "a{200}b"] {
            let Some(regex) = Regex::new(pattern, Syntax::Extended, false) else { continue };
            assert_eq!(regex.is_match(&long), None, "{pattern}");
            assert_eq!(regex.find(&long, 0), None, "{pattern}");
        }
        assert!(Regex::new(&"(".repeat(100_000), Syntax::Extended, false).is_none());
        assert!(Regex::new("((a{100}){100}){100}", Syntax::Extended, false).is_none());
    }
}
