//! `${...}` in all its forms.

use super::super::tree::{Index, Operation, Parameter, Part, ReplaceMode};
use super::cursor::Parser;
use super::word::Mode;
use shardscope_source::Code;

impl Parser<'_> {
    /// After `${`: the rest of the expansion, including its brace.
    pub(crate) fn braced(&mut self, start: usize, quoted: bool) -> Parameter {
        let entered = self.enter();
        let parameter = self.braced_here(start, quoted);
        // If it was too deep, nothing was entered, and the recorded failure ends parsing.
        self.depth -= u32::from(entered);
        parameter
    }

    fn braced_here(&mut self, start: usize, quoted: bool) -> Parameter {
        // `${#}`, `${#-...}`: the number of positional parameters, not a length.
        let length =
            self.peek() == Some(b'#') && !matches!(self.peek_at(1), Some(b'}' | b':' | b'-' | b'+' | b'='));
        self.at += usize::from(length);
        let indirect = self.peek() == Some(b'!') && self.peek_at(1) != Some(b'}');
        self.at += usize::from(indirect);
        let name_start = self.at;
        let name_length = match self.peek() {
            Some(byte) if byte.is_ascii_digit() => {
                let rest = self.bytes.get(self.at..self.end).unwrap_or(&[]);
                rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => self.identifier_length(),
            Some(b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-') => 1,
            _ => {
                self.fail(Code::UnreadableExpansion, "this is not a valid variable name", start);
                0
            }
        };
        self.at += name_length;
        let name = self.text.get(name_start..self.at).unwrap_or("").to_owned();
        let index = self.index(start);
        // An unknown operator is read as none; the brace that does not follow then fails the expansion.
        let operation = self.operation(quoted);
        if !self.eat("}") {
            let message = "this ${ is not closed, or its form is not known";
            self.fail(Code::UnreadableExpansion, message, start);
        }
        Parameter { name, span: self.span(start, self.at), quoted, index, length, indirect, operation }
    }

    fn index(&mut self, start: usize) -> Option<Index> {
        if self.eat("[@]") {
            return Some(Index::At);
        }
        if self.eat("[*]") {
            return Some(Index::Star);
        }
        if !self.eat("[") {
            return None;
        }
        let parts = self.nested_parts(Mode::Index);
        if !self.eat("]") {
            self.fail(Code::UnclosedExpansion, "this index is never closed", start);
        }
        Some(Index::One(parts))
    }

    fn operation(&mut self, quoted: bool) -> Operation {
        let operand = if quoted { Mode::BraceQuoted } else { Mode::Brace };
        let first = self.peek();
        let colon = first == Some(b':');
        let sign = if colon { self.peek_at(1) } else { first };
        match sign {
            Some(sign @ (b'-' | b'=' | b'?' | b'+')) => {
                self.at += 1 + usize::from(colon);
                Operation::Fallback { sign, colon, word: self.parts(operand) }
            }
            _ if colon => self.slice(),
            // The pattern's quotes are significant even inside double quotes, hence not `operand`.
            Some(sign @ (b'#' | b'%')) => {
                self.at += 1;
                let longest = self.peek() == Some(sign);
                self.at += usize::from(longest);
                Operation::Trim { suffix: sign == b'%', longest, pattern: self.parts(Mode::Brace) }
            }
            Some(b'/') => self.replacement(operand),
            Some(sign @ (b'^' | b',')) => {
                self.at += 1;
                let all = self.peek() == Some(sign);
                self.at += usize::from(all);
                // `${x^^[a-z]}`: the pattern is ignored, and every character is changed.
                self.parts(Mode::Brace);
                Operation::Case { upper: sign == b'^', all }
            }
            Some(b'@') => {
                let letter = self.peek_at(1).unwrap_or(0);
                self.at += 2;
                Operation::Transform(letter)
            }
            _ => Operation::None,
        }
    }

    /// `${x:offset:length}`
    fn slice(&mut self) -> Operation {
        self.at += 1;
        // Cut at the colon first: `?:` and `${...}` inside the arithmetic contain colons too.
        let open = self.at;
        let mut cut = None;
        let mut level = 0_u32;
        let mut close = open;
        while let Some(byte) = self.bytes.get(close).filter(|_| close < self.end) {
            match byte {
                b'{' | b'(' => level += 1,
                b'}' if level == 0 => break,
                b'}' | b')' => level = level.saturating_sub(1),
                b':' if level == 0 && cut.is_none() => cut = Some(close),
                b'\n' => {
                    self.fail(Code::UnreadableExpansion, "this ${ is not closed", open);
                    return Operation::None;
                }
                _ => {}
            }
            close += 1;
        }
        let offset = self.parts_between(open, cut.unwrap_or(close));
        let length = cut.map(|cut| self.parts_between(cut + 1, close));
        Operation::Slice { offset, length }
    }

    fn parts_between(&mut self, from: usize, to: usize) -> Vec<Part> {
        let end = self.limit(to);
        self.at = from;
        let parts = self.parts(Mode::Here);
        self.limit(end);
        parts
    }

    /// `${x/pattern/text}`
    fn replacement(&mut self, operand: Mode) -> Operation {
        self.at += 1;
        let mode = match self.peek() {
            Some(b'/') => ReplaceMode::All,
            Some(b'#') => ReplaceMode::Prefix,
            Some(b'%') => ReplaceMode::Suffix,
            _ => ReplaceMode::First,
        };
        self.at += usize::from(mode != ReplaceMode::First);
        let pattern = self.parts(Mode::Pattern);
        let with = if self.eat("/") { self.parts(operand) } else { Vec::new() };
        Operation::Replace { mode, pattern, with }
    }
}
