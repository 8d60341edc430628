//! Conditions, comparisons and choices of Python, by how closely they bind.

use super::expression::{Cursor, DEEPEST, Expression, LONGEST, Relation};

/// Signs and words of comparisons, those first that begin with others.
const RELATIONS: [(&str, Relation); 10] = [
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
    ("not in", Relation::NotIn),
    ("in", Relation::In),
    ("is not", Relation::IsNot),
    ("is", Relation::Is),
];

impl Cursor<'_> {
    /// `a`, or `a if b else c`.
    pub(super) fn choice(&mut self) -> Expression {
        let then = self.either();
        if self.is_too_deep() || !self.word("if") {
            return then;
        }
        let condition = self.either();
        if !self.word("else") {
            return Expression::Unknown;
        }
        self.depth += 1;
        let otherwise = self.choice();
        self.depth -= 1;
        Expression::Choice(Box::new([condition, then, otherwise]))
    }

    /// `a or b`.
    fn either(&mut self) -> Expression {
        let mut left = self.both();
        while self.word("or") {
            let right = self.both();
            left = self.computed(left, "or", right);
        }
        left
    }

    /// `a and b`.
    fn both(&mut self) -> Expression {
        let mut left = self.negated();
        while self.word("and") {
            let right = self.negated();
            self.signs += 1;
            left = if self.signs > LONGEST {
                Expression::Unknown
            } else {
                Expression::Both(Box::new(left), Box::new(right))
            };
        }
        left
    }

    /// `not a`.
    fn negated(&mut self) -> Expression {
        if self.is_too_deep() || !self.word("not") {
            return self.compared();
        }
        self.depth += 1;
        let inner = self.negated();
        self.depth -= 1;
        Expression::Not(Box::new(inner))
    }

    /// A value, or two that are compared. More in one chain are not read.
    fn compared(&mut self) -> Expression {
        let left = self.joined(&["+", "-"]);
        let Some(relation) = self.relation() else { return left };
        let right = self.joined(&["+", "-"]);
        if self.relation().is_some() {
            self.skip();
            return Expression::Unknown;
        }
        Expression::Compared(Box::new(left), relation, Box::new(right))
    }

    fn relation(&mut self) -> Option<Relation> {
        self.blanks();
        let (_, relation) = RELATIONS.iter().find(|(written, _)| {
            if written.starts_with(|sign: char| sign.is_ascii_alphabetic()) {
                return self.word(written);
            }
            let stands = self.rest().starts_with(*written);
            self.at += if stands { written.len() } else { 0 };
            stands
        })?;
        Some(*relation)
    }

    /// Whether brackets, negations and choices are nested deeper than is followed.
    pub(super) fn is_too_deep(&self) -> bool {
        self.depth == DEEPEST
    }
}
