//! Lists, dictionaries and subscripts of Python.

use super::expression::{Cursor, DEEPEST, Expression, LONGEST};

impl Cursor<'_> {
    pub(super) fn list(&mut self, close: u8) -> Expression {
        if self.depth == DEEPEST {
            self.skip();
            return Expression::Unknown;
        }
        self.depth += 1;
        self.at += 1;
        let (mut items, mut commas) = (Vec::new(), 0);
        loop {
            self.blanks();
            match self.sign() {
                Some(sign) if sign == close => {
                    self.at += 1;
                    break;
                }
                Some(b',') => {
                    self.at += 1;
                    commas += 1;
                }
                None | Some(b')' | b']' | b'}') => break,
                Some(_) => {
                    let item = self.value();
                    if items.len() < LONGEST {
                        items.push(item);
                    }
                }
            }
        }
        self.depth -= 1;
        match (close, items.as_mut_slice()) {
            (b')', [only]) if commas == 0 => std::mem::replace(only, Expression::Unknown),
            _ => Expression::List(items),
        }
    }

    /// What stands in brackets behind a value: `a["b"][0]`.
    pub(super) fn items(&mut self, mut value: Expression) -> Expression {
        while self.sign() == Some(b'[') {
            value = match self.list(b']') {
                Expression::List(mut items) if items.len() == 1 => {
                    Expression::Item(Box::new(value), Box::new(items.remove(0)))
                }
                _ => Expression::Unknown,
            };
        }
        value
    }

    /// `{key: value}`; a set or one that unpacks others is not read.
    pub(super) fn dictionary(&mut self) -> Expression {
        if self.is_too_deep() {
            self.skip();
            return Expression::Unknown;
        }
        self.depth += 1;
        self.at += 1;
        let (mut pairs, mut is_read) = (Vec::new(), true);
        loop {
            self.blanks();
            match self.sign() {
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => self.at += 1,
                None | Some(b')' | b']') => break,
                Some(_) => {
                    let key = self.value();
                    let has_value = self.sign() == Some(b':');
                    self.at += usize::from(has_value);
                    is_read &= has_value && pairs.len() < LONGEST;
                    if is_read {
                        pairs.push((key, self.value()));
                    } else if has_value {
                        self.skip();
                    }
                }
            }
        }
        self.depth -= 1;
        if is_read { Expression::Dictionary(pairs) } else { Expression::Unknown }
    }
}
