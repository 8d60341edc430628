//! Expressions of a Python program: f-strings, conditions, attributes, keys and calls. Anything unsupported is
//! [`Node::Opaque`].

/// Maximum nesting of brackets, operators and conditions.
const DEEPEST: u32 = 40;
/// Most values in a list without brackets.
const LONGEST: usize = 16;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// The text between quotes.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Another number, as written.
    Number(String),
    /// A name without dots.
    Name(String),
    /// `f"…{value}…"`, and adjacent string literals.
    Joined(Vec<Node>),
    /// Values in order, in brackets or parentheses.
    List(Vec<Node>),
    /// Keys and values; an item of a set has no key; an unsupported key means `**value`.
    Map(Vec<(Option<Node>, Node)>),
    /// What is called, and its arguments by keyword.
    Call(Box<Node>, Vec<(Option<String>, Node)>),
    /// `a.b`.
    Attribute(Box<Node>, String),
    /// `a[b]`.
    Item(Box<Node>, Box<Node>),
    /// Condition, value if true, value if false.
    Either(Box<[Node; 3]>),
    /// Two values joined by an operator: `+`, `or`, `not in`.
    Binary(&'static str, Box<Node>, Box<Node>),
    /// `not a`.
    Not(Box<Node>),
    /// Something that is not supported.
    Opaque,
}

impl Node {
    /// Its dotted name, if it is one: `args.name`.
    pub fn dotted(&self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name.clone()),
            Self::Attribute(of, field) => Some(format!("{}.{field}", of.dotted()?)),
            _ => None,
        }
    }
}

/// Parses a text as an expression.
pub fn node(text: &str) -> Node {
    let mut cursor = Cursor::new(text);
    let mut read = cursor.value();
    cursor.blanks();
    // `1, 2` without brackets.
    if cursor.sign() == Some(b',') {
        let mut items = vec![read];
        while cursor.sign() == Some(b',') && items.len() < LONGEST {
            cursor.at += 1;
            items.push(cursor.value());
            cursor.blanks();
        }
        read = Node::List(items);
    }
    if cursor.at < text.len() { Node::Opaque } else { read }
}

/// Binary operators, lowest precedence first; an operator is tried before its own prefixes.
const LEVELS: [&[&str]; 6] = [
    &["or"],
    &["and"],
    &["==", "!=", ">=", "<=", ">", "<", "not in", "in", "is not", "is"],
    &["|", "+", "-"],
    &["*", "//", "/", "%"],
    &["**"],
];

pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(super) fn sign(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn blanks(&mut self) {
        while let Some(sign) = self.sign() {
            match sign {
                b'#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                b'\\' => self.at += 1,
                sign if sign.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    /// Consumes an operator or a word, if it is here and nothing continues it.
    fn takes(&mut self, sign: &str) -> bool {
        self.blanks();
        let Some(behind) = self.rest().strip_prefix(sign) else { return false };
        let next = behind.bytes().next().unwrap_or(b' ');
        let ends = match sign {
            "*" | "/" => next != b'=' && next != sign.as_bytes()[0],
            "|" | "+" | "-" | "%" | "<" | ">" | "//" | "**" => next != b'=',
            _ if sign.ends_with(|last: char| last.is_ascii_alphabetic()) => {
                !next.is_ascii_alphanumeric() && next != b'_'
            }
            _ => true,
        };
        self.at += if ends { sign.len() } else { 0 };
        ends
    }

    pub(super) fn value(&mut self) -> Node {
        if self.depth >= DEEPEST {
            self.at = self.text.len();
            return Node::Opaque;
        }
        self.depth += 1;
        let mut read = self.level(0);
        if self.takes(":=") {
            read = Node::Binary(":=", Box::new(read), Box::new(self.value()));
        } else if self.takes("if") {
            let condition = self.level(0);
            read = if self.takes("else") {
                Node::Either(Box::new([condition, read, self.value()]))
            } else {
                Node::Opaque
            };
        }
        self.depth -= 1;
        read
    }

    fn level(&mut self, level: usize) -> Node {
        let Some(signs) = LEVELS.get(level) else { return self.unary() };
        let mut left =
            if level == 2 && self.takes("not") { self.negated(level) } else { self.level(level + 1) };
        let mut joined = 0;
        while let Some(sign) = signs.iter().find(|sign| self.takes(sign)) {
            let right = self.level(level + 1);
            joined += 1;
            // `a < b < c` is a chained comparison, which is not supported, and long chains are not followed.
            let chained = level == 2 && joined > 1 || joined > DEEPEST;
            left = if chained { Node::Opaque } else { Node::Binary(sign, Box::new(left), Box::new(right)) };
        }
        left
    }

    fn negated(&mut self, level: usize) -> Node {
        if self.depth >= DEEPEST {
            return self.skip();
        }
        self.depth += 1;
        let of = self.level(level);
        self.depth -= 1;
        Node::Not(Box::new(of))
    }

    fn unary(&mut self) -> Node {
        // Only for numbers.
        let minus = self.takes("-");
        let mut read = self.atom();
        if minus {
            return Node::Binary("-", Box::new(Node::Whole(0)), Box::new(read));
        }
        let mut parts = 0;
        loop {
            read = match self.sign() {
                _ if parts == DEEPEST => Node::Opaque,
                Some(b'.') => {
                    self.at += 1;
                    Node::Attribute(Box::new(read), self.word())
                }
                Some(b'(') => {
                    let arguments = self.items(b')').into_iter().map(|(key, value)| {
                        let key = key.map(|key| if let Node::Name(key) = key { key } else { String::new() });
                        (key, value)
                    });
                    Node::Call(Box::new(read), arguments.collect())
                }
                Some(b'[') => {
                    let mut keys = self.items(b']');
                    match keys.pop() {
                        Some((None, key)) if keys.is_empty() => Node::Item(Box::new(read), Box::new(key)),
                        _ => Node::Opaque,
                    }
                }
                _ => return read,
            };
            parts += 1;
            if parts > DEEPEST {
                self.at = self.text.len();
            }
        }
    }

    fn atom(&mut self) -> Node {
        self.blanks();
        match self.sign() {
            Some(b'(') => {
                let mut items = self.items(b')');
                let is_tuple = self.text.get(..self.at).is_some_and(|read| read.ends_with(",)"));
                match items.pop() {
                    Some((None, only)) if items.is_empty() && !is_tuple => only,
                    Some(last) => list(items.into_iter().chain([last])),
                    None => Node::List(Vec::new()),
                }
            }
            Some(b'[') => list(self.items(b']').into_iter()),
            Some(b'{') => Node::Map(self.items(b'}').into_iter().collect()),
            Some(b'"' | b'\'') => self.quoted(""),
            Some(sign) if sign.is_ascii_digit() => {
                let mut before = b' ';
                let length = self.rest().bytes().take_while(|byte| {
                    let of = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
                    let signed = matches!(byte, b'-' | b'+') && matches!(before, b'e' | b'E');
                    before = *byte;
                    of || signed
                });
                let length = length.count();
                let written = self.rest().get(..length).unwrap_or("").replace('_', "");
                self.at += length;
                match (written.parse(), written.parse::<f64>()) {
                    (Ok(whole), _) => Node::Whole(whole),
                    (_, Ok(_)) => Node::Number(written),
                    _ => Node::Opaque,
                }
            }
            Some(sign) if sign.is_ascii_alphabetic() || sign == b'_' => {
                let word = self.word();
                match self.sign() {
                    Some(b'"' | b'\'') => self.quoted(&word),
                    _ if word == "lambda" => self.skip(),
                    _ => Node::Name(word),
                }
            }
            _ => self.skip(),
        }
    }

    pub(super) fn word(&mut self) -> String {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        self.at += length;
        rest.get(..length).unwrap_or("").to_owned()
    }

    /// Values between brackets, each with what precedes `=` or `:`.
    fn items(&mut self, close: u8) -> Vec<(Option<Node>, Node)> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blanks();
            match self.sign() {
                None => return items,
                Some(sign) if sign == close => {
                    self.at += 1;
                    return items;
                }
                Some(b',') => self.at += 1,
                Some(b')' | b']' | b'}') => return items,
                Some(_) => {
                    let splat = self.takes("**");
                    let first = self.value();
                    let pair = !splat && (self.takes("=") || close == b'}' && self.takes(":"));
                    let (key, value) = if pair { (Some(first), self.value()) } else { (None, first) };
                    self.blanks();
                    // A comprehension, a slice.
                    let ends = matches!(self.sign(), None | Some(b',' | b')' | b']' | b'}'));
                    let value = if ends { value } else { self.skip() };
                    // `**options` in a call passes names that are not listed here.
                    items.push((if splat { Some(Node::Opaque) } else { key }, value));
                }
            }
        }
    }

    /// Skips to the end of a value.
    fn skip(&mut self) -> Node {
        let mut depth = 0_u32;
        while let Some(sign) = self.sign() {
            match sign {
                b'"' | b'\'' => {
                    self.quoted("");
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' | b',' if depth == 0 => break,
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        Node::Opaque
    }
}

fn list(items: impl Iterator<Item = (Option<Node>, Node)>) -> Node {
    Node::List(items.map(|(key, value)| if key.is_some() { Node::Opaque } else { value }).collect())
}
