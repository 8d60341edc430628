//! The expressions of the rules: arithmetic, comparison, choice, and a few functions over lists.

/// An expression of the rules. Texts are slices of the rules, which live as long as the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Whole(i128),
    Real(f64),
    Text(&'static str),
    /// A definition of the rules, or a key of the configuration.
    Name(&'static str),
    List(Vec<Expression>),
    Call(&'static str, Vec<Expression>),
    Not(Box<Expression>),
    Minus(Box<Expression>),
    Two(&'static str, Box<[Expression; 2]>),
    Choice(Box<[Expression; 3]>),
}

/// Operators by strength, weakest first; those of one strength stand together and bind to the left.
const OPERATORS: [&[&str]; 6] =
    [&["??"], &["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
/// Deepest nesting of an expression.
const DEPTH: u32 = 64;

impl Expression {
    /// Reads an expression; none where the text is not one.
    pub(crate) fn read(text: &'static str) -> Option<Self> {
        let mut reader = ExpressionParser { rest: text, depth: 0 };
        let expression = reader.choice()?;
        reader.rest.trim_start().is_empty().then_some(expression)
    }
}

struct ExpressionParser {
    rest: &'static str,
    depth: u32,
}

impl ExpressionParser {
    fn choice(&mut self) -> Option<Expression> {
        self.depth += 1;
        // Rules are this crate's own, but are read in the page too: a fault must give nothing instead of a crash.
        if self.depth > DEPTH {
            return None;
        }
        let condition = self.two(0)?;
        let whole = if self.mark("?") {
            let one = self.choice()?;
            self.needs(":")?;
            Expression::Choice(Box::new([condition, one, self.choice()?]))
        } else {
            condition
        };
        self.depth -= 1;
        Some(whole)
    }

    fn two(&mut self, strength: usize) -> Option<Expression> {
        // Precedence climbing over `OPERATORS`, one recursion a level.
        let Some(operators) = OPERATORS.get(strength) else { return self.one() };
        let mut left = self.two(strength + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.mark(operator)) {
            let right = self.two(strength + 1)?;
            left = Expression::Two(operator, Box::new([left, right]));
        }
        Some(left)
    }

    fn one(&mut self) -> Option<Expression> {
        if self.mark("!") {
            return Some(Expression::Not(Box::new(self.one()?)));
        }
        if self.mark("-") {
            return Some(Expression::Minus(Box::new(self.one()?)));
        }
        if self.mark("(") {
            let inner = self.choice()?;
            self.needs(")")?;
            return Some(inner);
        }
        if self.mark("[") {
            return Some(Expression::List(self.until("]")?));
        }
        if self.mark("'") {
            let (text, rest) = self.rest.split_once('\'')?;
            self.rest = rest;
            return Some(Expression::Text(text));
        }
        let word = self.word()?;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            // Whole numbers stay whole: sizes are exact.
            return match word.parse() {
                Ok(whole) => Some(Expression::Whole(whole)),
                Err(_) => word.parse().ok().map(Expression::Real),
            };
        }
        // A word with a parenthesis right behind it is a function, in any other place a name.
        if self.mark("(") {
            return Some(Expression::Call(word, self.until(")")?));
        }
        Some(Expression::Name(word))
    }

    /// Expressions with commas between them, up to a mark.
    fn until(&mut self, end: &str) -> Option<Vec<Expression>> {
        let mut all = Vec::new();
        if self.mark(end) {
            return Some(all);
        }
        loop {
            all.push(self.choice()?);
            if self.mark(end) {
                return Some(all);
            }
            self.needs(",")?;
        }
    }

    fn word(&mut self) -> Option<&'static str> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')));
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn needs(&mut self, mark: &str) -> Option<()> {
        self.mark(mark).then_some(())
    }

    /// Goes over a mark if it is next. `?` is not the beginning of `??`, nor `!` that of `!=`, nor `<` of `<=`.
    fn mark(&mut self, mark: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(behind) = rest.strip_prefix(mark) else { return false };
        let longer = match mark {
            "?" => behind.starts_with('?'),
            "!" | "<" | ">" => behind.starts_with('='),
            _ => false,
        };
        if !longer {
            self.rest = behind;
        }
        !longer
    }
}

#[cfg(test)]
mod tests {
    use super::Expression;

    #[test]
    fn strength_and_choice_are_as_in_c() {
        let read = |text: &'static str| Expression::read(text).expect("an expression");
        assert_eq!(read("a + b * c"), read("a + (b * c)"));
        assert_eq!(read("a - b - c"), read("(a - b) - c"));
        assert_eq!(read("a ? b : c ? d : e"), read("a ? b : (c ? d : e)"));
        assert_eq!(read("a ?? b == c"), read("a ?? (b == c)"));
        assert_eq!(read("!a && b != 'x'"), read("(!a) && (b != 'x')"));
        for wrong in ["", "a +", "(a", "a b", "f(a,", "'x"] {
            assert_eq!(Expression::read(wrong), None, "{wrong}");
        }
    }
}
