//! A named formula and the values of its symbols.

/// A formula as it is shown: what it says in symbols and words, and where it is from.
#[derive(Debug, PartialEq, Eq)]
pub struct Formula {
    /// In symbols, for example `s·b·h·2`.
    pub expression: &'static str,
    /// In words, one sentence.
    pub meaning: &'static str,
    /// Paper, section and equation, or framework file.
    pub source: &'static str,
    /// What symbols of its own mean, each with its unit. Others are sizes of the plan, which mean the same in every formula.
    pub letters: &'static [(&'static str, &'static str)],
}

impl Formula {
    /// The formula `expression`, in words and with its source.
    #[must_use]
    pub const fn new(expression: &'static str, meaning: &'static str, source: &'static str) -> Self {
        Self { expression, meaning, source, letters: &[] }
    }

    /// The same, whose symbols `letters` mean what is said here and not what they mean elsewhere.
    #[must_use]
    pub const fn letters(self, letters: &'static [(&'static str, &'static str)]) -> Self {
        Self { letters, ..self }
    }

    /// What its own symbol `name` means; none for a size of the plan.
    #[must_use]
    pub fn letter(&self, name: &str) -> Option<&'static str> {
        self.letters.iter().find_map(|(letter, meaning)| (*letter == name).then_some(*meaning))
    }

    /// The symbols named in the expression, each once, in order of appearance.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let (text, mut start) = (self.expression, 0);
        // One past the end, where the last word is closed. Signs beyond ASCII (`·`) are separators.
        for end in 0..=text.len() {
            let byte = text.as_bytes().get(end);
            if byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
                continue;
            }
            let word = text.get(start..end).unwrap_or_default();
            if word.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && !names.contains(&word) {
                names.push(word);
            }
            start = end + 1;
        }
        names
    }
}

/// One symbol of a formula with its value in this plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    /// As written in the formula.
    pub name: &'static str,
    /// Its value here; exact below 2^53.
    pub value: f64,
    /// Whether it is a size of the plan, rather than a symbol of this formula alone.
    pub of_plan: bool,
}

/// Why a value is what it is: a formula, and its symbols with the values of this plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The formula applied.
    pub formula: &'static Formula,
    /// The symbols with this plan's values.
    pub symbols: Vec<Symbol>,
}

impl Explanation {
    /// `formula` applied to `symbols` of its own.
    #[must_use]
    pub fn new(formula: &'static Formula, symbols: &[(&'static str, f64)]) -> Self {
        let mut all = Vec::with_capacity(symbols.len());
        for &(name, value) in symbols {
            all.push(Symbol { name, value, of_plan: false });
        }
        Self { formula, symbols: all }
    }
}
