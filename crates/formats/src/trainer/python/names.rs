//! What the lines of a program do with its names: a single pass over the text answers all queries of one kind.

use super::literal::literal;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// The names of a program.
#[derive(Default)]
pub(super) struct Names<'a> {
    text: &'a str,
    assigned: OnceCell<HashMap<&'a str, Assigned<'a>>>,
    used: OnceCell<HashSet<&'a str>>,
}

/// The assignments of one name.
#[derive(Default)]
struct Assigned<'a> {
    /// The literal of its first assignment; `None` if that is computed, or if another one differs.
    agreed: Option<Option<&'a str>>,
    /// Its top-level value, and whether it is assigned only once.
    top: Option<(&'a str, bool)>,
}

impl<'a> Names<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// The literal that a name is assigned within functions or branches, if all its assignments agree.
    pub(super) fn only(&self, name: &str) -> Option<&'a str> {
        self.assigned().get(name)?.agreed.flatten()
    }

    /// The literal that a name is assigned at the top level, if that happens once.
    pub(super) fn once(&self, name: &str) -> Option<&'a str> {
        self.assigned().get(name)?.top.filter(|(_, once)| *once).and_then(|(value, _)| literal(value))
    }

    /// Whether a name occurs anywhere other than in its assignments.
    pub(super) fn is_used(&self, name: &str) -> bool {
        self.used.get_or_init(|| used(self.text)).contains(name)
    }

    fn assigned(&self) -> &HashMap<&'a str, Assigned<'a>> {
        self.assigned.get_or_init(|| {
            let mut assigned: HashMap<&'a str, Assigned<'a>> = HashMap::new();
            for line in self.text.lines() {
                let words = line.trim_start();
                let end = words.find(|sign| !is_of_name(sign)).unwrap_or(words.len());
                let (name, rest) = words.split_at(end);
                let Some(value) = rest.trim_start().strip_prefix('=').filter(|_| !name.is_empty()) else {
                    continue;
                };
                let value = value.split(" #").next().unwrap_or_default().trim();
                let known = assigned.entry(name).or_default();
                if line.len() == words.len() {
                    known.top = Some((value, known.top.is_none()));
                }
                // A comparison, or a keyword of a call.
                if value.is_empty() || value.starts_with('=') || value.ends_with(',') {
                    continue;
                }
                let value = literal(value);
                known.agreed = Some(known.agreed.map_or(value, |agreed| agreed.filter(|_| agreed == value)));
            }
            assigned
        })
    }
}

fn used(text: &str) -> HashSet<&str> {
    let mut used = HashSet::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut rest = line;
        while let Some(start) = rest.find(is_of_name) {
            let (before, word) = rest.split_at(start);
            let (name, behind) = word.split_at(word.find(|sign| !is_of_name(sign)).unwrap_or(word.len()));
            let first = before.len() + word.len() == line.len() && before.trim().is_empty();
            let given = first && {
                let behind = behind.trim_start();
                behind.starts_with('=') && !behind.starts_with("==") || behind.starts_with(':')
            };
            if !given && !before.ends_with('.') {
                used.insert(name);
            }
            rest = behind;
        }
    }
    used
}

pub(super) fn is_of_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_name_has_the_literal_on_which_its_assignments_agree() {
        let text = "a = 8\nif x:\n    a = 8  # as above\nb = 1\n    b = 2\nc = f(1)\nd = 1\n    d = f(d)\n    e = 'x'\nf(\n    e=g,\n)\n\
            g == 1\ng = 3\nh= 4\nh =5\n";
        let names = Names::new(text);
        let only = |name: &str| names.only(name);
        assert_eq!(["a", "b", "c", "d"].map(only), [Some("8"), None, None, None]);
        assert_eq!(["e", "f", "g", "h", "i", ""].map(only), [Some("'x'"), None, Some("3"), None, None, None]);
        let once = |name: &str| names.once(name);
        assert_eq!(["a", "b", "c", "d"].map(once), [Some("8"), Some("1"), None, Some("1")]);
        assert_eq!(["e", "g", "h", "i"].map(once), [None, None, None, None]);
    }
}
