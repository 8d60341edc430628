use super::super::tree::{Part, Redirect, RedirectKind, Word};
use super::cursor::Parser;
use super::word::Mode;
use shardscope_source::Code;

impl Parser<'_> {
    /// Whether a redirection starts here; placeholders and process substitutions do not count.
    pub(crate) fn at_redirect(&self) -> bool {
        let digits = usize::from(self.peek().is_some_and(|byte| byte.is_ascii_digit()));
        match self.peek_at(digits) {
            Some(b'<' | b'>') => digits > 0 || !self.opens_angle() || self.peek_at(1) == Some(b'<'),
            Some(b'&') => digits == 0 && self.peek_at(1) == Some(b'>'),
            _ => false,
        }
    }

    pub(crate) fn redirect(&mut self) -> Redirect {
        self.node();
        let start = self.at;
        let descriptor = self.peek().filter(u8::is_ascii_digit).map(|digit| digit - b'0');
        self.at += usize::from(descriptor.is_some());
        let kind = if self.eat("<<<") {
            RedirectKind::HereString(self.target())
        } else if self.eat("<<-") {
            self.here_document(true)
        } else if self.eat("<<") {
            self.here_document(false)
        } else if self.eat("<&") || self.eat(">&") {
            self.target();
            RedirectKind::Duplicate
        } else if self.eat("&>>") || self.eat(">>") {
            RedirectKind::Append(self.target())
        } else if self.eat("&>") || self.eat(">|") || self.eat("<>") || self.eat(">") {
            RedirectKind::Write(self.target())
        } else {
            self.at += 1;
            RedirectKind::Read(self.target())
        };
        Redirect { descriptor, kind, span: self.span(start, self.at) }
    }

    fn target(&mut self) -> Word {
        self.skip_blanks();
        let start = self.at;
        let word = self.word();
        if word.parts.is_empty() {
            self.fail(Code::MissingTarget, "a redirection needs a file here", start);
        }
        word
    }

    /// After `<<`: the delimiter; the body is read from the lines that follow this one.
    fn here_document(&mut self, strip_tabs: bool) -> RedirectKind {
        self.skip_blanks();
        let start = self.at;
        let (delimiter, quoted) = self.delimiter();
        if delimiter.is_empty() && !quoted {
            self.fail(Code::MissingTarget, "a here-document needs a delimiter here", start);
        }
        let after = self.at;
        let Some((line_end, body)) = self.here_start() else {
            return RedirectKind::Here(Vec::new());
        };
        let (body_end, resume) = self.here_end(body, &delimiter, strip_tabs);
        self.here = Some((line_end, resume));
        // The body follows below, but the rest of this line is parsed first: go back to just after the delimiter.
        let parts = self.here_parts(body, body_end, quoted, strip_tabs);
        self.at = after;
        RedirectKind::Here(parts)
    }

    /// The closing word without its quotes, and whether it had any.
    fn delimiter(&mut self) -> (String, bool) {
        let mut word = String::new();
        let mut quoted = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'\'' | b'"' => {
                    quoted = true;
                    self.at += 1;
                    let close = self.find_byte(byte).unwrap_or(self.at);
                    word.push_str(self.text.get(self.at..close).unwrap_or(""));
                    self.at = close + 1;
                }
                b'\\' => {
                    quoted = true;
                    self.at += 1;
                }
                b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                _ if self.blank_length() > 0 => break,
                _ => {
                    let length = self
                        .text
                        .get(self.at..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(1, char::len_utf8);
                    word.push_str(self.text.get(self.at..self.at + length).unwrap_or(""));
                    self.at += length;
                }
            }
        }
        (word, quoted)
    }

    /// The end of this line, including continuation lines, and where the next here-document starts.
    fn here_start(&self) -> Option<(usize, usize)> {
        // A second here-document of the line begins where the first one ends.
        if let Some((line_end, resume)) = self.here
            && line_end >= self.at
        {
            return Some((line_end, resume));
        }
        let mut at = self.at;
        loop {
            match self.bytes.get(at).filter(|_| at < self.end)? {
                b'\\' => at += 2,
                b'\n' => return Some((at, at + 1)),
                _ => at += 1,
            }
        }
    }

    /// Where the body ends and where the line after its closing word starts.
    fn here_end(&mut self, body: usize, delimiter: &str, strip_tabs: bool) -> (usize, usize) {
        let mut at = body;
        while at < self.end {
            let rest = self.text.get(at..self.end).unwrap_or("");
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = rest.get(..length).unwrap_or("");
            let line = line.strip_suffix('\r').unwrap_or(line);
            let line = if strip_tabs { line.trim_start_matches('\t') } else { line };
            if line == delimiter {
                return (at, (at + length + 1).min(self.end));
            }
            at += length + 1;
        }
        // Never closed: bash warns and takes everything that is left.
        (self.end, self.end)
    }

    fn here_parts(&mut self, from: usize, to: usize, quoted: bool, strip_tabs: bool) -> Vec<Part> {
        let mut parts = Vec::new();
        // Substitutions in the body contain newlines, which must not skip this document.
        let here = self.here.take();
        // A quoted delimiter: no expansion in the body.
        if quoted && !strip_tabs {
            self.flush(from, to, true, &mut parts);
        } else if strip_tabs {
            let mut at = from;
            while at < to {
                let rest = self.bytes.get(at..to).unwrap_or(&[]);
                let length =
                    rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |length| length + 1);
                let tabs = rest.iter().take_while(|byte| **byte == b'\t').count();
                self.here_line(at + tabs, at + length, quoted, &mut parts);
                at += length;
            }
        } else {
            self.here_line(from, to, false, &mut parts);
        }
        if !self.failed() {
            self.here = here;
        }
        parts
    }

    fn here_line(&mut self, from: usize, to: usize, quoted: bool, parts: &mut Vec<Part>) {
        if quoted {
            return self.flush(from, to, true, parts);
        }
        let end = self.limit(to);
        self.at = from;
        let read = self.nested_parts(Mode::Here);
        self.limit(end);
        parts.extend(read);
    }
}
