use std::rc::Rc;

use super::super::tree::{
    Assigned, Assignment, Command, CommandForm, Element, Joint, List, Part, Pipeline, Simple, Statement,
};
use super::cursor::{Failure, Parser};
use super::word::Mode;
use shardscope_source::{Code, Diagnostic};

/// Builtins whose arguments may be assignments.
pub(crate) const DECLARATIONS: &[&str] = &["export", "local", "declare", "typeset", "readonly"];

impl Parser<'_> {
    /// Commands up to the word or symbol that closes the surrounding construct.
    pub(crate) fn list(&mut self) -> List {
        let mut list = List::new();
        let end = self.end;
        // The opening fence of a Markdown block.
        if self.at == 0 && self.looking_at("```") {
            self.skip_line();
        }
        loop {
            self.skip_separators();
            if self.at_closer() {
                return list;
            }
            let start = self.at;
            let statement = self.statement();
            match self.failure {
                None => list.push(statement),
                // Within a substitution the failure is passed up: dropping one of its lines would change its output.
                Some(failure) if failure.fatal || self.strict > 0 => return list,
                Some(failure) => self.recover(start, end, failure),
            }
        }
    }

    /// [`Self::list`] one level deeper; empty if that is too deep.
    pub(crate) fn nested_list(&mut self) -> List {
        if !self.enter() {
            return List::new();
        }
        let list = self.list();
        self.leave();
        list
    }

    /// Skips the line on which a statement could not be parsed.
    fn recover(&mut self, start: usize, end: usize, failure: Failure) {
        self.go_on(end);
        self.report(failure);
        let wasted = failure.reached.abs_diff(start);
        self.at = start;
        // A here-document of the failed line is parsed as commands from now on, each with its own diagnostic.
        self.here = None;
        self.skip_line();
        self.waste(wasted)
    }

    /// Charges for text that could not be parsed.
    fn waste(&mut self, bytes: usize) {
        /// What a statement costs in addition to its bytes.
        const STATEMENT: usize = 256;
        match self.notes.waste_left.checked_sub(bytes + STATEMENT) {
            Some(left) => self.notes.waste_left = left,
            None => self.end_here(Code::NotAScript, "the text cannot be read as a shell script from here on"),
        }
    }

    fn skip_separators(&mut self) {
        loop {
            self.skip_lines();
            let separator = match self.peek() {
                // `;;`, `;&` and `;;&` close an arm of a `case`.
                Some(b';') => !matches!(self.peek_at(1), Some(b';' | b'&')),
                // `&>` is a redirection.
                Some(b'&') => self.peek_at(1) != Some(b'>'),
                Some(b'|') => true,
                _ => false,
            };
            if !separator {
                return;
            }
            self.at += 1;
        }
    }

    fn at_closer(&self) -> bool {
        match self.peek() {
            None | Some(b')' | b';') => true,
            Some(b'}') => self.keyword() == "}",
            // The first letters of the closing words: most bytes can be ruled out without reading a word.
            Some(b't' | b'e' | b'f' | b'd') => {
                matches!(self.keyword(), "then" | "elif" | "else" | "fi" | "do" | "done" | "esac")
            }
            Some(_) => false,
        }
    }

    /// Skips a closing word or symbol that closes nothing.
    pub(crate) fn skip_stray_closer(&mut self) {
        // At least one byte, or the same closer would be met forever.
        let length = self.keyword().len().max(if self.looking_at(";;") { 2 } else { 1 });
        let end = self.end;
        self.fail(Code::UnexpectedWord, "this closes nothing", self.at);
        if let Some(failure) = self.go_on(end) {
            self.report(failure);
        }
        self.at += length;
        self.waste(length);
    }

    fn statement(&mut self) -> Statement {
        let first = self.pipeline();
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let joint = if self.eat("&&") {
                Joint::And
            } else if self.eat("||") {
                Joint::Or
            } else {
                break;
            };
            self.skip_lines();
            rest.push((joint, self.pipeline()));
        }
        match self.peek() {
            None | Some(b'\n' | b';' | b'&' | b')' | b'}') => {}
            Some(b'(') => {
                self.fail(
                    Code::UnexpectedSign,
                    "( is not expected here; arithmetic is written $(( ))",
                    self.at,
                );
            }
            Some(_) if self.at_closer() => {}
            Some(_) => self.fail(Code::UnexpectedSign, "this is not expected here", self.at),
        }
        Statement { first, rest }
    }

    fn pipeline(&mut self) -> Pipeline {
        let mut negated = false;
        loop {
            if self.eat_keyword("!") {
                negated = !negated;
            } else if !self.eat_keyword("time") {
                break;
            }
            self.skip_blanks();
        }
        let mut stages = vec![self.command()];
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                return Pipeline { negated, stages };
            }
            self.at += 1;
            self.eat("&");
            self.skip_lines();
            stages.push(self.command());
        }
    }

    fn command(&mut self) -> Command {
        let entered = self.enter();
        let command = self.command_here();
        self.depth -= u32::from(entered);
        command
    }

    fn command_here(&mut self) -> Command {
        self.node();
        let start = self.at;
        let mut redirects = Vec::new();
        let kind = match self.compound() {
            Some(kind) => {
                self.skip_blanks();
                while self.at_redirect() {
                    redirects.push(self.redirect());
                    self.skip_blanks();
                }
                kind
            }
            None => self.simple(&mut redirects),
        };
        Command { span: self.span(start, self.at), kind, redirects }
    }

    fn simple(&mut self, redirects: &mut Vec<super::super::tree::Redirect>) -> CommandForm {
        let start = self.at;
        let mut simple = Simple::default();
        let mut declaring = false;
        let mut end = self.at;
        loop {
            self.skip_blanks();
            let Some(byte) = self.peek() else { break };
            if self.at_redirect() {
                redirects.push(self.redirect());
                end = self.at;
                continue;
            }
            if let Some(word) = self.bare_expression(simple.words.last()) {
                simple.words.push(word);
                end = self.at;
                continue;
            }
            // Only now is it clear that the preceding word was the name of a function.
            if byte == b'(' && self.is_definition(&simple, start, end) {
                return self.definition(start, end);
            }
            if (simple.words.is_empty() || declaring)
                && let Some(assignment) = self.assignment()
            {
                if declaring {
                    simple.declared.push(assignment)
                } else {
                    simple.assignments.push(assignment)
                }
                end = self.at;
                continue;
            }
            let before = self.at;
            let word = self.word();
            if word.parts.is_empty() {
                if self.at == before {
                    break;
                }
                continue;
            }
            if simple.words.is_empty() {
                // As in bash, where `export A=(1 2)` is an assignment only after the builtin's literal name.
                declaring = DECLARATIONS.contains(&literal(&word.parts).unwrap_or(""));
                self.warn_lost_option(&word.parts, start);
            }
            simple.words.push(word);
            end = self.at;
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && redirects.is_empty() {
            self.fail(Code::UnexpectedSign, "a command is expected here", self.at);
        }
        CommandForm::Simple(simple)
    }

    /// Warns of an option in the place of a command: the line above ended its command too early.
    fn warn_lost_option(&mut self, parts: &[Part], start: usize) {
        let Some(text) = literal(parts) else { return };
        if !text.starts_with("--") || text.len() < 4 || self.failed() {
            return;
        }
        let span = self.span(start, self.at);
        self.notes.report(
            Diagnostic::warning(
                Code::OptionOutsideCommand,
                format!("{text} stands where a command is expected, so bash does not pass it on"),
            )
            .at(span)
            .hint("the line above ends the command: its backslash is missing, or it is a comment"),
        );
    }

    fn is_definition(&self, simple: &Simple, start: usize, end: usize) -> bool {
        let named = simple.words.len() == 1 && simple.assignments.is_empty();
        named
            && end > start
            && literal(&simple.words[0].parts).is_some()
            && self.peek_after_blanks(self.at + 1) == Some(b')')
    }

    fn peek_after_blanks(&self, from: usize) -> Option<u8> {
        let rest = self.bytes.get(from..self.end)?;
        rest.iter().find(|byte| !matches!(byte, b' ' | b'\t')).copied()
    }

    fn definition(&mut self, start: usize, end: usize) -> CommandForm {
        let name = self.text.get(start..end).unwrap_or("").to_owned();
        while self.peek() != Some(b')') && !self.at_end() {
            self.at += 1;
        }
        self.at += 1;
        self.function_body(name)
    }

    pub(crate) fn function_body(&mut self, name: String) -> CommandForm {
        self.skip_lines();
        let start = self.at;
        let body = self.command();
        if matches!(body.kind, CommandForm::Simple(_)) {
            self.fail(Code::UnreadableFunction, "a function needs a body in braces here", start);
        }
        CommandForm::Function { name, body: Rc::new(body) }
    }

    /// An assignment, if one starts here.
    fn assignment(&mut self) -> Option<Assignment> {
        let start = self.at;
        let length = self.identifier_length();
        if length == 0 {
            return None;
        }
        let name = self.text.get(start..start + length).unwrap_or("");
        self.at += length;
        let mut index = None;
        if self.peek() == Some(b'[') {
            index = self.subscript();
        }
        let append = self.peek() == Some(b'+') && self.peek_at(1) == Some(b'=');
        if self.peek_at(usize::from(append)) != Some(b'=') {
            self.at = start;
            return None;
        }
        self.at += 1 + usize::from(append);
        self.node();
        let value = if self.peek() == Some(b'(') && index.is_none() {
            self.at += 1;
            let entered = self.enter();
            let elements = self.elements(start);
            self.depth -= u32::from(entered);
            Assigned::Array(elements)
        } else {
            Assigned::Scalar(self.word())
        };
        let span = self.span(start, self.at);
        Some(Assignment { name: name.to_owned(), index, append, value, span })
    }

    /// `[...]` directly before `=` or `+=`.
    fn subscript(&mut self) -> Option<Vec<Part>> {
        let start = self.at;
        self.at += 1;
        // Scanned for before parsing: a `[` in some other word could fail there, and a failure cannot be undone.
        let line = self.bytes.get(self.at..self.end.min(self.at + 200)).unwrap_or(&[]);
        let plausible = line
            .windows(2)
            .take_while(|pair| pair[0] != b'\n')
            .any(|pair| pair[0] == b']' && matches!(pair[1], b'=' | b'+'));
        if !plausible {
            self.at = start;
            return None;
        }
        let parts = self.nested_parts(Mode::Index);
        if !self.eat("]") {
            self.at = start;
            return None;
        }
        Some(parts)
    }

    /// The elements of an array up to its closing parenthesis.
    fn elements(&mut self, start: usize) -> Vec<Element> {
        let mut elements = Vec::new();
        loop {
            self.skip_lines();
            match self.peek() {
                None => {
                    self.fail(Code::UnclosedArray, "the parenthesis of this array is never closed", start);
                    return elements;
                }
                Some(b')') => {
                    self.at += 1;
                    return elements;
                }
                Some(_) => {}
            }
            let index = if self.peek() == Some(b'[') { self.subscript() } else { None };
            let indexed = index.is_some() && self.eat("=");
            let before = self.at;
            let word = self.word();
            if word.parts.is_empty() && !indexed && self.at == before {
                self.fail(Code::UnexpectedSign, "this is not expected in an array", self.at);
            }
            elements.push(Element { index: index.filter(|_| indexed), word });
        }
    }
}

/// The text of a word that is one unquoted literal.
pub(crate) fn literal(parts: &[Part]) -> Option<&str> {
    match parts {
        [Part::Text { text, quoted: false, .. }] => Some(text),
        _ => None,
    }
}
