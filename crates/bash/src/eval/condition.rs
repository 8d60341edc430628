//! `[ ]`, `[[ ]]` and `(( ))`: true, false, decided by an unset variable, or unknown.

use super::super::tree::{Part, TestToken};
use super::super::value::{Value, Word};
use super::number::NoNumber;
use super::pattern;
use super::regex::{Regex, Syntax};
use super::state::{Certainty, Evaluator, Status};
use super::variables::{Elements, Shape};
use shardscope_source::{Code, Span};

/// One word of a test.
pub(crate) struct Item {
    value: Value,
    /// The right side of `==` as a pattern; `None` if something in it is unknown.
    pattern: Option<String>,
    sign: Sign,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Operand,
    And,
    Or,
    Not,
    Open,
    Close,
}

struct Tester<'s, 'a> {
    shell: &'s mut Evaluator<'a>,
    items: Vec<Item>,
    at: usize,
    /// `[[ ]]`: patterns, arithmetic operands.
    double: bool,
    depth: u32,
}

impl Evaluator<'_> {
    /// `[ ... ]` and `test ...`, given the words between.
    pub(crate) fn test_words(&mut self, words: &[Word]) -> Status {
        let mut items = Vec::new();
        for word in words {
            let sign = match word.text() {
                // By its text, even if that comes from an expansion: `[` receives words and cannot distinguish them;
                // `[[ ]]` has tokens.
                "-a" => Sign::And,
                "-o" => Sign::Or,
                "!" => Sign::Not,
                "(" => Sign::Open,
                ")" => Sign::Close,
                _ => Sign::Operand,
            };
            items.push(Item { value: word.value.clone(), pattern: None, sign });
        }
        self.test(items, false)
    }

    /// `[[ ... ]]`
    pub(crate) fn test_tokens(&mut self, tokens: &[TestToken]) -> Status {
        let mut items = Vec::new();
        let mut equals = false;
        for token in tokens {
            let sign = match token {
                TestToken::And => Sign::And,
                TestToken::Or => Sign::Or,
                TestToken::Not => Sign::Not,
                TestToken::Open => Sign::Open,
                TestToken::Close => Sign::Close,
                TestToken::Word(_) | TestToken::Less | TestToken::Greater => Sign::Operand,
            };
            let (value, pattern) = match token {
                TestToken::Word(word) => {
                    (self.text_of(&word.parts), if equals { self.pattern_of(&word.parts) } else { None })
                }
                TestToken::Less => (Value::computed("<", Span::default()), None),
                TestToken::Greater => (Value::computed(">", Span::default()), None),
                _ => (Value::default(), None),
            };
            // Only the right side is a pattern.
            equals = matches!(value.text(), "==" | "=" | "!=" | "=~") && sign == Sign::Operand;
            items.push(Item { value, pattern, sign });
        }
        self.test(items, true)
    }

    /// `(( ... ))`
    pub(crate) fn arithmetic_status(&mut self, expression: &[Part], span: Span) -> Status {
        let value = self.text_of(expression);
        match self.number(&value, 0) {
            Ok(number) => Status::certain(number != 0),
            Err(NoNumber::Hole(hole)) => {
                self.condition_holes.push(hole);
                Status::UNKNOWN
            }
            Err(NoNumber::Wrong(why)) => {
                let message = format!("{}: {why}", value.text().trim());
                self.notes.report(shardscope_source::Diagnostic::warning(Code::Arithmetic, message).at(span));
                Status::UNKNOWN
            }
        }
    }

    fn test(&mut self, items: Vec<Item>, double: bool) -> Status {
        // All of them, even after an `&&` that is not reached: everything that could change the outcome must be
        // named.
        for item in &items {
            item.value.add_holes(&mut self.condition_holes);
        }
        let mut tester = Tester { shell: self, items, at: 0, double, depth: 0 };
        tester.any()
    }
}

impl Tester<'_, '_> {
    fn sign(&self) -> Option<Sign> {
        self.items.get(self.at).map(|item| item.sign)
    }

    fn any(&mut self) -> Status {
        let mut status = self.all();
        while self.sign() == Some(Sign::Or) {
            self.at += 1;
            let right = self.all();
            status = either(status, right);
        }
        status
    }

    fn all(&mut self) -> Status {
        let mut status = self.negated();
        while self.sign() == Some(Sign::And) {
            self.at += 1;
            let right = self.negated();
            status = both(status, right);
        }
        status
    }

    fn negated(&mut self) -> Status {
        self.depth += 1;
        if self.depth > 40 {
            return Status::UNKNOWN;
        }
        let status = match self.sign() {
            // `[ ! = x ]` compares a `!`; POSIX decides by the number of words.
            Some(Sign::Not) if self.at + 1 < self.items.len() && !self.binary_follows() => {
                self.at += 1;
                self.negated().not()
            }
            Some(Sign::Open) if !self.binary_follows() => {
                self.at += 1;
                let inner = self.any();
                self.at += usize::from(self.sign() == Some(Sign::Close));
                inner
            }
            _ => self.primary(),
        };
        self.depth -= 1;
        status
    }

    fn binary_follows(&self) -> bool {
        self.at + 2 < self.items.len()
            && self.items.get(self.at + 1).is_some_and(|item| is_binary(item.value.text()))
    }

    fn primary(&mut self) -> Status {
        let Some(first) = self.items.get(self.at) else { return Status::certain(false) };
        if self.binary_follows() {
            let at = self.at;
            self.at += 3;
            return self.binary(at);
        }
        let operator = first.value.text().to_owned();
        // `[ -f ]` without an operand is true: it tests a text that is not empty.
        let unary = operator.len() == 2 && operator.starts_with('-') && first.value.known().is_some();
        if unary && self.items.get(self.at + 1).is_some_and(|item| item.sign == Sign::Operand) {
            self.at += 2;
            return self.unary(&operator, self.at - 1);
        }
        self.at += 1;
        self.empty(self.at - 1).not()
    }

    /// Whether the text of an item is empty.
    fn empty(&self, at: usize) -> Status {
        let Some(item) = self.items.get(at) else { return Status::certain(true) };
        match self.shell.resolved(&item.value, true) {
            Some((text, unset)) if unset && text.is_empty() => Status::unset(true),
            Some((text, _)) => Status::certain(text.is_empty()),
            // If part of the text is known, an unknown part cannot make it empty.
            None if item.value.pieces().any(|piece| piece.hole.is_none()) => Status::certain(false),
            None => Status::UNKNOWN,
        }
    }

    fn unary(&mut self, operator: &str, at: usize) -> Status {
        match operator {
            "-z" => self.empty(at),
            "-n" => self.empty(at).not(),
            "-v" => {
                let name = self.items.get(at).and_then(|item| item.value.known()).unwrap_or("");
                let set = self.shell.variables.has(name.split('[').next().unwrap_or(name));
                if set { Status::certain(true) } else { Status::unset(false) }
            }
            // `-f`, `-d`, `-x` and the like depend on the machine.
            _ => Status::UNKNOWN,
        }
    }

    fn binary(&mut self, at: usize) -> Status {
        let (Some(left), Some(middle), Some(right)) =
            (self.items.get(at), self.items.get(at + 1), self.items.get(at + 2))
        else {
            return Status::UNKNOWN;
        };
        let operator = middle.value.text();
        // Not `-lt` and the like: a bound is not a likely value for the unknown.
        if matches!(operator, "=" | "==" | "!=" | "-eq" | "=~") {
            let pair = match (left.value.only_hole(), right.value.only_hole()) {
                (Some(hole), None) => right.value.known().map(|literal| (hole, literal.to_owned())),
                (None, Some(hole)) => left.value.known().map(|literal| (hole, literal.to_owned())),
                _ => None,
            };
            if let Some((hole, literal)) = pair {
                self.shell.add_choice(hole, &literal);
            }
        }
        self.decided(at)
    }

    fn decided(&mut self, at: usize) -> Status {
        let (Some(left), Some(middle), Some(right)) =
            (self.items.get(at), self.items.get(at + 1), self.items.get(at + 2))
        else {
            return Status::UNKNOWN;
        };
        let sides = (self.shell.resolved(&left.value, false), self.shell.resolved(&right.value, false));
        let (Some((a, a_unset)), Some((b, b_unset))) = sides else {
            return if middle.value.text() == "=~" { self.unmatched() } else { Status::UNKNOWN };
        };
        let certainty = if a_unset || b_unset { Certainty::Unset } else { Certainty::Certain };
        let operator = middle.value.text().to_owned();
        let any_case = self.shell.any_case && self.double;
        let equal = match &right.pattern {
            Some(pattern) => pattern::decided(pattern, &a, any_case),
            None => Some(a == b),
        };
        let ok = match operator.as_str() {
            "=" | "==" | "!=" => match equal {
                Some(equal) => equal == (operator != "!="),
                None => return Status::UNKNOWN,
            },
            "<" => a < b,
            ">" => a > b,
            "=~" => {
                let regex = Regex::new(&b, Syntax::Extended, any_case);
                let Some(found) = regex.as_ref().and_then(|regex| regex.is_match(&a)) else {
                    return self.unmatched();
                };
                let groups = if found {
                    regex.and_then(|regex| regex.groups(&b, &a, any_case))
                } else {
                    Some(Vec::new())
                };
                match groups {
                    Some(groups) => {
                        let mut values = Vec::new();
                        for text in &groups {
                            values.push(Value::computed(text, right.value.origin().unwrap_or_default()));
                        }
                        let span = right.value.origin().unwrap_or_default();
                        self.shell.set_elements("BASH_REMATCH", Shape::Array, Elements::listed(values), span);
                    }
                    None => self.shell.forget("BASH_REMATCH"),
                }
                found
            }
            // They compare files of the machine.
            "-nt" | "-ot" | "-ef" => return Status::UNKNOWN,
            _ => match self.numbers(&a, &b) {
                Some((a, b)) => compare(&operator, a, b),
                None => {
                    return if certainty == Certainty::Unset {
                        Status::unset(false)
                    } else {
                        Status::certain(false)
                    };
                }
            },
        };
        Status { ok, certainty, code: 1 }
    }

    /// The outcome of a regular expression that is not supported here.
    fn unmatched(&mut self) -> Status {
        self.shell.forget("BASH_REMATCH");
        Status::UNKNOWN
    }

    /// Both sides as integers; `[[ ]]` evaluates them, with an empty text as zero.
    fn numbers(&mut self, a: &str, b: &str) -> Option<(i64, i64)> {
        let mut number = |text: &str| {
            if !self.double {
                return text.trim().parse().ok();
            }
            let value = Value::computed(text, Span::default());
            self.shell.number(&value, 0).ok()
        };
        Some((number(a)?, number(b)?))
    }
}

fn is_binary(text: &str) -> bool {
    matches!(
        text,
        "=" | "=="
            | "!="
            | "<"
            | ">"
            | "=~"
            | "-eq"
            | "-ne"
            | "-lt"
            | "-le"
            | "-gt"
            | "-ge"
            | "-nt"
            | "-ot"
            | "-ef"
    )
}

fn compare(operator: &str, a: i64, b: i64) -> bool {
    match operator {
        "-eq" => a == b,
        "-ne" => a != b,
        "-lt" => a < b,
        "-le" => a <= b,
        "-gt" => a > b,
        _ => a >= b,
    }
}

pub(crate) fn both(left: Status, right: Status) -> Status {
    // False regardless of the other side. Otherwise the outcome is as certain as the side that it depends on.
    let decisive = |status: Status| !status.ok && status.certainty == Certainty::Certain;
    match (left.ok, right.ok) {
        _ if decisive(left) => left,
        _ if decisive(right) => right,
        (true, true) => Status { ok: true, certainty: left.certainty.min(right.certainty), code: 1 },
        (false, true) => left,
        (true, false) => right,
        (false, false) => {
            if left.certainty > right.certainty {
                left
            } else {
                right
            }
        }
    }
}

pub(crate) fn either(left: Status, right: Status) -> Status {
    match (left.ok, right.ok) {
        (true, true) => {
            if left.certainty >= right.certainty {
                left
            } else {
                right
            }
        }
        (true, false) => left,
        (false, true) => right,
        (false, false) => Status { ok: false, certainty: left.certainty.min(right.certainty), code: 1 },
    }
}
