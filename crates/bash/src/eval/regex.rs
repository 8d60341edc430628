//! The small part of extended regular expressions that `=~`, `grep` and `sed` use in launch scripts.

/// Steps after which matching is given up.
const STEPS: u32 = 20_000;

#[derive(Debug)]
enum Node {
    Any,
    Char(char),
    /// A bracket expression: where it starts in the pattern.
    Class(usize),
    Start,
    End,
    Group(Vec<Vec<Item>>),
}

#[derive(Debug)]
struct Item {
    node: Node,
    least: u32,
    most: u32,
}

/// Where the pattern first matches: character offsets, and whether it is readable at all.
pub(crate) fn find(pattern: &str, text: &[char]) -> Option<Option<(usize, usize)>> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut reader = Reader { pattern: &chars, at: 0, depth: 0 };
    let choices = reader.choices()?;
    if reader.at != chars.len() {
        return None;
    }
    let mut matcher = Matcher { pattern: &chars, text, steps: STEPS };
    let whole = [Item { node: Node::Group(choices), least: 1, most: 1 }];
    for start in 0..=text.len() {
        let mut end = None;
        matcher.sequence(&whole, start, &mut |at| {
            end = Some(end.map_or(at, |known: usize| known.max(at)));
            false
        });
        if matcher.steps == 0 {
            return None;
        }
        if let Some(end) = end {
            return Some(Some((start, end)));
        }
    }
    Some(None)
}

/// Whether the pattern matches somewhere; none when it is not readable here.
pub(crate) fn search(pattern: &str, text: &str) -> Option<bool> {
    let chars: Vec<char> = text.chars().collect();
    find(pattern, &chars).map(|found| found.is_some())
}

struct Reader<'p> {
    pattern: &'p [char],
    at: usize,
    depth: u32,
}

impl Reader<'_> {
    fn choices(&mut self) -> Option<Vec<Vec<Item>>> {
        self.depth += 1;
        if self.depth > 8 {
            return None;
        }
        let mut choices = vec![Vec::new()];
        while let Some(c) = self.pattern.get(self.at).copied() {
            if c == ')' {
                break;
            }
            self.at += 1;
            if c == '|' {
                choices.push(Vec::new());
                continue;
            }
            let node = self.node(c)?;
            let (least, most) = self.repetition()?;
            choices.last_mut()?.push(Item { node, least, most });
        }
        self.depth -= 1;
        Some(choices)
    }

    fn node(&mut self, c: char) -> Option<Node> {
        Some(match c {
            '.' => Node::Any,
            '^' => Node::Start,
            '$' => Node::End,
            '[' => {
                let start = self.at - 1;
                self.at = super::pattern::class(self.pattern, start, '\0')?.1;
                Node::Class(start)
            }
            '(' => {
                let inner = self.choices()?;
                if self.pattern.get(self.at) != Some(&')') {
                    return None;
                }
                self.at += 1;
                Node::Group(inner)
            }
            '\\' => {
                let escaped = *self.pattern.get(self.at)?;
                if escaped.is_ascii_alphanumeric() {
                    return None;
                }
                self.at += 1;
                Node::Char(escaped)
            }
            '*' | '+' | '?' | '{' => return None,
            literal => Node::Char(literal),
        })
    }

    fn repetition(&mut self) -> Option<(u32, u32)> {
        let found = match self.pattern.get(self.at) {
            Some('*') => (0, u32::MAX),
            Some('+') => (1, u32::MAX),
            Some('?') => (0, 1),
            Some('{') => return self.counted(),
            _ => return Some((1, 1)),
        };
        self.at += 1;
        Some(found)
    }

    fn counted(&mut self) -> Option<(u32, u32)> {
        let close = self.at + self.pattern.get(self.at..)?.iter().take(12).position(|c| *c == '}')?;
        let inner: String = self.pattern.get(self.at + 1..close)?.iter().collect();
        self.at = close + 1;
        Some(match inner.split_once(',') {
            Some((low, "")) => (low.parse().ok()?, u32::MAX),
            Some((low, high)) => (low.parse().ok()?, high.parse().ok()?),
            None => (inner.parse().ok()?, inner.parse().ok()?),
        })
    }
}

struct Matcher<'p> {
    pattern: &'p [char],
    text: &'p [char],
    steps: u32,
}

impl Matcher<'_> {
    /// Calls `then` with every end that the items can reach, until it answers true.
    fn sequence(&mut self, items: &[Item], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
        // One path is tried at a time; ends are collected so that the borrow of `then` stays simple.
        let mut ends = vec![at];
        for item in items {
            let mut next = Vec::new();
            for start in ends {
                self.repeated(item, start, &mut next);
            }
            next.sort();
            next.dedup();
            ends = next;
            if ends.is_empty() || self.steps == 0 {
                return false;
            }
        }
        ends.into_iter().any(then)
    }

    fn repeated(&mut self, item: &Item, start: usize, out: &mut Vec<usize>) {
        let mut front = vec![start];
        let mut count = 0;
        loop {
            if count >= item.least {
                out.extend(&front);
            }
            if count >= item.most || front.is_empty() || self.steps == 0 {
                return;
            }
            let mut next = Vec::new();
            for at in &front {
                self.once(&item.node, *at, &mut next);
            }
            next.sort();
            next.dedup();
            if next == front {
                // Nothing was taken, so any number of turns ends here.
                out.extend(&front);
                return;
            }
            front = next;
            count += 1;
        }
    }

    fn once(&mut self, node: &Node, at: usize, out: &mut Vec<usize>) {
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return;
        }
        let here = self.text.get(at).copied();
        match node {
            Node::Any if here.is_some() => out.push(at + 1),
            Node::Char(c) if here == Some(*c) => out.push(at + 1),
            Node::Class(start)
                if here
                    .and_then(|c| super::pattern::class(self.pattern, *start, c))
                    .is_some_and(|(found, _)| found) =>
            {
                out.push(at + 1);
            }
            Node::Start if at == 0 => out.push(at),
            Node::End if at == self.text.len() => out.push(at),
            Node::Group(choices) => {
                for choice in choices {
                    self.sequence(choice, at, &mut |end| {
                        out.push(end);
                        false
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::search;

    #[test]
    fn small_expressions_match() {
        for (pattern, text, expected) in [
            ("^[0-9]+$", "1024", Some(true)),
            ("^[0-9]+$", "12a", Some(false)),
            ("^(7B|13B)$", "13B", Some(true)),
            ("moe", "qwen-moe-57b", Some(true)),
            ("^--?[a-z]+(=.*)?$", "--tp=4", Some(true)),
            ("a{2,3}b", "xaab", Some(true)),
            ("(a*)*b", "aaaaaaaaaaaaaaaaaaaaac", Some(false)),
            ("\\d", "1", None),
            ("(", "1", None),
        ] {
            assert_eq!(search(pattern, text), expected, "{pattern} in {text}");
        }
    }
}
