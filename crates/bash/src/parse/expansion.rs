use shardscope_source::Code;
use std::rc::Rc;

use super::super::script::HoleKind;
use super::super::tree::{List, Operation, Parameter, Part};
use super::super::value::Value;
use super::cursor::{Failure, Parser};
use super::word::Mode;

/// How far the `))` of an arithmetic expression is looked for, in bytes.
const ARITHMETIC_REACH: usize = 4096;

impl Parser<'_> {
    /// Whether the `$` here starts an expansion.
    pub(crate) fn opens_expansion(&self, mode: Mode) -> bool {
        match self.peek_at(1) {
            Some(b'(' | b'{' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-' | b'_') => true,
            // `$[1+2]` is the old form of arithmetic; in a regular expression `$` ends the line.
            Some(b'[') => mode != Mode::Regex,
            Some(b'"' | b'\'') => !mode.quoted(),
            Some(next) => next.is_ascii_alphanumeric(),
            None => false,
        }
    }

    /// An expansion that starts with `$`.
    pub(crate) fn dollar(&mut self, mode: Mode, parts: &mut Vec<Part>) {
        self.node();
        let start = self.at;
        let quoted = mode.quoted();
        self.at += 1;
        match self.peek() {
            // `$((a; b) | c)` is a substitution that begins with a subshell: how it closes distinguishes them.
            Some(b'(') if self.peek_at(1) == Some(b'(') && self.closes_arithmetic(self.at) => {
                self.at += 2;
                let expression = self.arithmetic();
                parts.push(Part::Arithmetic { expression, span: self.span(start, self.at) });
            }
            Some(b'(') => {
                self.at += 1;
                parts.push(self.command_substitution(start, quoted));
            }
            Some(b'[') => {
                self.at += 1;
                let expression = self.nested_parts(Mode::Index);
                if !self.eat("]") {
                    self.fail(Code::UnclosedExpansion, "this $[ is never closed", start);
                }
                parts.push(Part::Arithmetic { expression, span: self.span(start, self.at) });
            }
            Some(b'{') => {
                self.at += 1;
                let parameter = self.braced(start, quoted);
                parts.push(Part::Parameter(Box::new(parameter)));
            }
            Some(b'\'') => self.ansi_quoted(start, parts),
            // `$"..."`, a text to be translated: the quote is read next as an ordinary one.
            Some(b'"') => {}
            _ => {
                let name = self.parameter_name();
                parts.push(Part::Parameter(Box::new(Parameter {
                    name,
                    span: self.span(start, self.at),
                    quoted,
                    index: None,
                    length: false,
                    indirect: false,
                    operation: Operation::None,
                })));
            }
        }
    }

    /// The name of an unbraced parameter: an identifier, one digit or one special character.
    fn parameter_name(&mut self) -> String {
        let start = self.at;
        let length = match self.peek() {
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => self.identifier_length(),
            _ => 1,
        };
        self.at += length;
        self.text.get(start..self.at).unwrap_or("").to_owned()
    }

    pub(crate) fn identifier_length(&self) -> usize {
        let rest = self.bytes.get(self.at..self.end).unwrap_or(&[]);
        if rest.first().is_some_and(u8::is_ascii_digit) {
            return 0;
        }
        rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
    }

    /// After `$((` or `((`: the expression, including its closing parentheses.
    pub(crate) fn arithmetic(&mut self) -> Vec<Part> {
        let start = self.at;
        let mut parts = self.nested_parts(Mode::Arithmetic);
        while self.peek() == Some(b';') {
            self.at += 1;
            let more = self.nested_parts(Mode::Arithmetic);
            parts.extend(more);
        }
        if !self.eat("))") {
            self.fail(Code::UnclosedExpansion, "this arithmetic is never closed by ))", start);
        }
        parts
    }

    /// Whether the two parentheses at a byte are closed by two adjacent ones.
    pub(crate) fn closes_arithmetic(&mut self, open: usize) -> bool {
        let rest = self.bytes.get(open..self.end.min(open + ARITHMETIC_REACH)).unwrap_or(&[]);
        let mut level = 0_u32;
        for (at, byte) in rest.iter().enumerate() {
            match byte {
                b'(' => level += 1,
                b')' if level == 2 => return rest.get(at + 1) == Some(&b')'),
                b')' => level = level.saturating_sub(1),
                _ => {}
            }
        }
        // A fruitless scan is charged, so that it cannot happen over and over.
        self.notes.waste_left = self.notes.waste_left.saturating_sub(rest.len());
        false
    }

    /// After `$(`: a command list and the closing parenthesis, or a hole when it cannot be read.
    fn command_substitution(&mut self, start: usize, quoted: bool) -> Part {
        let (inner, end) = (self.at, self.end);
        let body = self.substituted();
        if let Some(failure) = self.failure
            && !failure.fatal
        {
            // The inside cannot be parsed, but its end is known: yield an unknown rather than lose the line.
            self.go_on(end);
            self.at = inner;
            if let Some(close) = self.closing_parenthesis() {
                self.at = close + 1;
                let name = self.text.get(inner..close).unwrap_or("").trim();
                let span = self.span(start, self.at);
                let id = self.notes.hole(HoleKind::Command, name, span, Vec::new());
                let text = super::super::notes::shown(HoleKind::Command, name);
                return Part::Hole { id, text, origin: self.origin(start, self.at) };
            }
            self.fail_with(Failure { reached: inner, ..failure });
        }
        Part::Command { body, span: self.span(start, self.at), quoted }
    }

    /// A command list up to and including `)`.
    pub(crate) fn substituted(&mut self) -> Rc<List> {
        let start = self.at;
        self.strict += 1;
        let list = self.nested_list();
        self.strict -= 1;
        if !self.eat(")") {
            self.fail(Code::UnclosedExpansion, "this $( is never closed", start.saturating_sub(2));
        }
        Rc::new(list)
    }

    /// The parenthesis on this line that closes the one just consumed.
    fn closing_parenthesis(&self) -> Option<usize> {
        let mut level = 0_u32;
        for at in self.at..self.end {
            match self.bytes.get(at) {
                Some(b'(') => level += 1,
                Some(b')') if level == 0 => return Some(at),
                Some(b')') => level -= 1,
                Some(b'\n') | None => return None,
                Some(_) => {}
            }
        }
        None
    }

    /// A command between backquotes.
    pub(crate) fn backquoted(&mut self, quoted: bool, parts: &mut Vec<Part>) {
        self.node();
        let open = self.at;
        self.at += 1;
        let inner = self.at;
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'`') => break,
                Some(b'\\') => {
                    escaped |= self.peek_at(1).is_some_and(|next| b"$`\\\"".contains(&next));
                    self.at += 2;
                }
                Some(_) => self.at += 1,
                None => return self.fail(Code::UnclosedQuote, "this backquote is never closed", open),
            }
        }
        let close = self.at;
        let body =
            if escaped { self.unescaped_list(inner, close, quoted) } else { self.list_between(inner, close) };
        self.at = close + 1;
        parts.push(Part::Command { body: Rc::new(body), span: self.span(open, self.at), quoted });
    }

    fn list_between(&mut self, from: usize, to: usize) -> List {
        let here = self.here.take();
        let end = self.limit(to);
        self.at = from;
        self.strict += 1;
        let list = self.nested_list();
        self.strict -= 1;
        let complete = self.at == to;
        self.limit(end);
        self.here = here;
        if !complete {
            // Parsed in place only if it ends exactly at the backquote: an unescaped closer inside would continue
            // outside.
            let message = "the command between these backquotes cannot be read";
            self.fail(Code::UnreadableCommand, message, from);
        }
        list
    }

    /// The command between backquotes with one level of backslashes removed.
    fn unescaped_list(&mut self, from: usize, to: usize, quoted: bool) -> List {
        let mut plain = Value::default();
        let mut at = from;
        let mut run = from;
        // Where backslashes were removed from the text.
        let mut removed = Vec::new();
        while at < to {
            let next = self.bytes.get(at + 1).copied().unwrap_or(0);
            if self.bytes.get(at) == Some(&b'\\') && (b"$`\\".contains(&next) || (quoted && next == b'"')) {
                self.pieces(run, at, &mut |text, mark, origin| plain.push(text, origin, mark.hole));
                removed.push(plain.len());
                run = at + 1;
                at += 1;
            }
            at += 1;
        }
        self.pieces(run, to, &mut |text, mark, origin| plain.push(text, origin, mark.hole));
        if !self.enter() {
            return List::new();
        }
        let mut inner = Parser::new(plain.text(), plain.marks(), self.depth, self.notes);
        // A separate parser, since removing backslashes moves every byte; the marks keep the places in the source.
        inner.strict = 1;
        let list = inner.list();
        if let Some(failure) = inner.failure {
            let missing = removed.iter().filter(|&&place| place <= failure.at).count();
            self.fail_with(Failure { at: from + failure.at + missing, reached: self.at, ..failure });
        }
        self.leave();
        list
    }

    /// `$'...'`
    fn ansi_quoted(&mut self, start: usize, parts: &mut Vec<Part>) {
        self.at += 1;
        let mut text = String::new();
        loop {
            let run = self.at;
            while self.peek().is_some_and(|byte| byte != b'\'' && byte != b'\\') {
                self.at += 1;
            }
            text.push_str(self.text.get(run..self.at).unwrap_or(""));
            match (self.peek(), self.peek_at(1)) {
                (Some(b'\''), _) => break,
                (Some(_), Some(escape)) if escape.is_ascii() => {
                    text.push(match escape {
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        b'a' => '\u{7}',
                        b'e' | b'E' => '\u{1b}',
                        other => char::from(other),
                    });
                    self.at += 2;
                }
                (Some(_), Some(_)) => self.at += 1,
                _ => return self.fail(Code::UnclosedQuote, "this quote is never closed", start),
            }
        }
        self.at += 1;
        let mut origin = self.origin(start, self.at);
        // With its escapes replaced the text is no longer the bytes under its span.
        origin.exact = false;
        parts.push(Part::Text { text, origin, quoted: true });
    }
}
