use super::super::limits;
use super::super::notes::Notes;
use super::super::value::{Mark, Origin};
use shardscope_source::{Code, Diagnostic, Span};

/// Why a statement could not be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: &'static str,
    pub(crate) at: usize,
    /// How far parsing had come: the text between the statement's start and here was parsed in vain.
    pub(crate) reached: usize,
    /// Whether parsing must end here.
    pub(crate) fatal: bool,
}

/// A position in a text that is being parsed. If a statement cannot be parsed, the text appears to end at once until
/// the failure is handled, and what is parsed meanwhile is discarded: no function needs to return an error.
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) marks: &'a [Mark],
    pub(crate) at: usize,
    /// Where reading stops: the end, or the closing backquote.
    pub(crate) end: usize,
    // Starts above 0 for text parsed during evaluation (`eval`), so that both kinds of nesting count together.
    pub(crate) depth: u32,
    /// Inside a substitution: a failure belongs to the statement around it.
    pub(crate) strict: u32,
    /// The newline after which here-documents start, and where the last of them ends.
    pub(crate) here: Option<(usize, usize)>,
    /// Why the statement that is being read cannot be read.
    pub(crate) failure: Option<Failure>,
    pub(crate) notes: &'a mut Notes,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, marks: &'a [Mark], depth: u32, notes: &'a mut Notes) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            marks,
            at: 0,
            end: text.len(),
            depth,
            strict: 0,
            here: None,
            failure: None,
            notes,
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        if at < self.end { self.bytes.get(at).copied() } else { None }
    }

    pub(crate) fn at_end(&self) -> bool {
        self.at >= self.end
    }

    pub(crate) fn looking_at(&self, text: &str) -> bool {
        self.bytes.get(self.at..self.end).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }

    #[cold]
    pub(crate) fn fail(&mut self, code: Code, message: &'static str, at: usize) {
        self.fail_with(Failure { code, message, at, reached: self.at, fatal: false });
    }

    /// Fails permanently: nothing after this point is parsed.
    pub(crate) fn end_here(&mut self, code: Code, message: &'static str) {
        self.fail_with(Failure { code, message, at: self.at, reached: self.at, fatal: true });
    }

    /// Ends the text here, unless something failed before.
    pub(crate) fn fail_with(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure);
            // The text appears empty from here on, so every loop that peeks ends.
            self.end = 0;
        }
    }

    /// Makes the text visible up to a byte again, and takes the failure.
    pub(crate) fn go_on(&mut self, end: usize) -> Option<Failure> {
        self.end = end;
        self.failure.take()
    }

    /// Limits the visible text to a byte; returns the previous end.
    // After a failure the end stays 0, or the failed text would be parsed further.
    pub(crate) fn limit(&mut self, end: usize) -> usize {
        let old = self.end;
        if !self.failed() {
            self.end = end;
        }
        old
    }

    /// Reports why a statement could not be read.
    pub(crate) fn report(&mut self, failure: Failure) {
        let Failure { code, message, at, fatal, .. } = failure;
        let span = self.span(at, self.character_end(at));
        let found = if fatal {
            Diagnostic::error(code, message)
        } else {
            Diagnostic::warning(code, message).hint("the line is left out")
        };
        self.notes.report(found.at(span));
    }

    /// Counts a node of the tree, and ends parsing if there are too many.
    pub(crate) fn node(&mut self) {
        match self.notes.nodes_left.checked_sub(1) {
            Some(left) => self.notes.nodes_left = left,
            None => self.end_here(
                Code::ShellTooLong,
                "the text is far longer than any launch script; it was read up to here",
            ),
        }
    }

    /// Goes one level down, if that is not too deep; [`Self::leave`] goes up again.
    pub(crate) fn enter(&mut self) -> bool {
        let enters = self.depth < limits::DEPTH;
        if enters {
            self.depth += 1;
        } else {
            let message = "commands, quotes or expansions are nested too deeply here";
            self.fail(Code::ShellTooDeep, message, self.at);
        }
        enters
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The end of the character at a byte.
    fn character_end(&self, at: usize) -> usize {
        let length = self.text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        at + length
    }

    fn mark_at(&self, at: usize) -> usize {
        self.marks.partition_point(|mark| mark.end as usize <= at)
    }

    fn mark_start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.marks.get(index - 1).map_or(0, |mark| mark.end as usize) }
    }

    /// Where text of this parser is in the source.
    pub(crate) fn span(&self, from: usize, to: usize) -> Span {
        let first = self.origin(from, to.max(from));
        // One byte or one piece: no need to look for a second place.
        if to <= from + 1 || self.marks.len() == 1 {
            return first.span;
        }
        let last = self.mark_at(to - 1);
        let end =
            self.marks.get(last).map_or(first.span, |mark| piece(mark, self.mark_start(last), from, to).span);
        // Text assembled from several places need not be in source order; a span over both would show unrelated
        // lines.
        if end.start >= first.span.start { first.span.to(end) } else { first.span }
    }

    /// The origin of the text from one byte on, up to another or the end of its piece.
    pub(crate) fn origin(&self, from: usize, to: usize) -> Origin {
        let at = self.mark_at(from).min(self.marks.len().saturating_sub(1));
        match self.marks.get(at) {
            Some(mark) => piece(mark, self.mark_start(at), from, to),
            None => Origin::computed(Span::default()),
        }
    }

    /// Visits the pieces of the text between two bytes.
    pub(crate) fn pieces(&self, from: usize, to: usize, visit: &mut dyn FnMut(&'a str, &Mark, Origin)) {
        let mut start = from;
        let mut index = self.mark_at(from);
        while start < to {
            let Some(mark) = self.marks.get(index) else { break };
            let end = to.min(mark.end as usize);
            visit(
                self.text.get(start..end).unwrap_or(""),
                mark,
                piece(mark, self.mark_start(index), start, end),
            );
            start = end;
            index += 1;
        }
    }

    /// The end of the hole that starts here, if one does.
    pub(crate) fn hole_end(&self) -> Option<usize> {
        // The usual case is a plain script: this is called at every special character, so avoid the search.
        if self.marks.len() == 1 && self.marks[0].hole.is_none() {
            return None;
        }
        let index = self.mark_at(self.at);
        let mark = self.marks.get(index)?;
        mark.hole?;
        (self.mark_start(index) == self.at).then_some(mark.end as usize)
    }

    /// The length of the blank here: spaces, including the kinds that browsers paste, and carriage returns.
    pub(crate) fn blank_length(&self) -> usize {
        match self.peek() {
            Some(b' ' | b'\t' | b'\r') => 1,
            // The same characters as `value::is_blank`, by their UTF-8 bytes.
            Some(0xc2) if self.peek_at(1) == Some(0xa0) => 2,
            Some(0xe2)
                if self.peek_at(1) == Some(0x80) && matches!(self.peek_at(2), Some(0x87 | 0x8b | 0xaf)) =>
            {
                3
            }
            Some(0xe3) if self.looking_at("\u{3000}") => 3,
            Some(0xef) if self.looking_at("\u{feff}") => 3,
            _ => 0,
        }
    }

    /// The length of a line continuation here: a backslash, possibly stray blanks, and the newline.
    pub(crate) fn continuation_length(&self) -> usize {
        if self.peek() != Some(b'\\') {
            return 0;
        }
        match (self.peek_at(1), self.peek_at(2)) {
            (Some(b'\n'), _) => 2,
            (Some(b'\r'), Some(b'\n')) => 3,
            _ => 0,
        }
    }

    /// Skips blanks, line continuations and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            let step = self.blank_length() + self.continuation_length();
            if step > 0 {
                self.at += step;
                continue;
            }
            match self.peek() {
                Some(b'\\') if self.skip_loose_continuation() => {}
                // Called only where a word may begin: a `#` inside a word is not a comment.
                Some(b'#') => return self.skip_line(),
                _ => return,
            }
        }
    }

    /// A backslash followed by blanks up to the line end: meant as a continuation.
    fn skip_loose_continuation(&mut self) -> bool {
        let start = self.at;
        self.at += 1;
        while self.blank_length() > 0 {
            self.at += self.blank_length();
        }
        if self.at > start + 1 && self.peek() == Some(b'\n') {
            let span = self.span(start, self.at);
            self.notes.report(
                Diagnostic::warning(
                    Code::BlankAfterBackslash,
                    "blanks after this backslash: bash ends the command here",
                )
                .at(span)
                .hint("it is read as a continued line; remove the blanks"),
            );
            self.at += 1;
            return true;
        }
        if self.at > start + 1 && self.peek() == Some(b'#') && self.is_lost_behind_comment() {
            let span = self.span(start, self.at);
            self.notes.report(
                Diagnostic::error(
                    Code::BlankAfterBackslash,
                    "this backslash escapes the blank before a comment, so bash ends the command here and never passes on the next line",
                )
                .at(span)
                .hint("put the comment on a line of its own, above the command"),
            );
            // What was meant is read on, for what else is to be said of it.
            self.skip_line();
            self.at += usize::from(self.peek() == Some(b'\n'));
            return true;
        }
        self.at = start;
        false
    }

    /// Whether the line after this comment begins with an option (`--bf16`, `trainer.nnodes=1`), which is no command.
    fn is_lost_behind_comment(&self) -> bool {
        let rest = self.bytes.get(self.at..self.end).unwrap_or(&[]);
        let mut lines = rest.split(|byte| *byte == b'\n').skip(1);
        let line = lines.next().unwrap_or(&[]).trim_ascii_start();
        let word = line.split(u8::is_ascii_whitespace).next().unwrap_or(&[]);
        let name = word.split(|byte| *byte == b'=').next().unwrap_or(&[]);
        word.starts_with(b"--") || name.len() < word.len() && name.contains(&b'.')
    }

    /// Goes to the end of the line.
    pub(crate) fn skip_line(&mut self) {
        let rest = self.bytes.get(self.at..self.end).unwrap_or(&[]);
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    /// Consumes a newline and the here-documents that follow it.
    pub(crate) fn newline(&mut self) -> bool {
        if self.peek() != Some(b'\n') {
            return false;
        }
        match self.here {
            Some((line_end, resume)) if line_end == self.at => {
                self.at = resume;
                self.here = None;
            }
            _ => self.at += 1,
        }
        // The fence of a Markdown block that was copied along.
        if self.looking_at("```") {
            self.skip_line();
        }
        true
    }

    /// Skips blanks, comments and newlines.
    pub(crate) fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            if !self.newline() {
                return;
            }
        }
    }

    /// The unquoted word here, if it consists of characters that occur in reserved words.
    pub(crate) fn keyword(&self) -> &'a str {
        let rest = self.bytes.get(self.at..self.end).unwrap_or(&[]);
        // One byte longer than the longest of them (`function`), so that `functions` is not mistaken for it.
        let length = rest
            .iter()
            .take(9)
            .take_while(|byte| byte.is_ascii_lowercase() || b"{}![]".contains(byte))
            .count();
        match rest.get(length) {
            None | Some(b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') => {
                self.text.get(self.at..self.at + length).unwrap_or("")
            }
            _ => "",
        }
    }

    /// Consumes a reserved word.
    pub(crate) fn eat_keyword(&mut self, word: &str) -> bool {
        let found = self.keyword() == word;
        if found {
            self.at += word.len();
        }
        found
    }
}

/// The origin of the bytes `from..to` of the text, within one mark that starts at `start`.
fn piece(mark: &Mark, start: usize, from: usize, to: usize) -> Origin {
    let mut origin = mark.origin;
    if origin.exact {
        let (from, to) = (from.max(start) - start, to.min(mark.end as usize).max(start) - start);
        origin.span =
            origin.span.part(u32::try_from(from).unwrap_or(u32::MAX), u32::try_from(to).unwrap_or(u32::MAX));
    }
    origin
}
