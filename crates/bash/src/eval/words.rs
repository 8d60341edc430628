//! From words as written to words as a program receives them: expansion, splitting, braces.

use super::super::limits;
use super::super::script::HoleKind;
use super::super::tree::{self, Part};
use super::super::value::{Origin, Value, Word, is_blank};
use super::parameter::{Expanded, weight};
use super::state::Evaluator;
use super::{braces, pattern};
use shardscope_source::{Code, Diagnostic, Span};

/// The words being built.
#[derive(Default)]
struct Fields {
    done: Vec<Value>,
    current: Value,
    /// Whether the current word exists even if it is empty.
    open: bool,
    /// Whether everything is one text that is never split.
    whole: bool,
}

impl Fields {
    fn push(&mut self, text: &str, origin: Origin) {
        self.current.push(text, origin, None);
        self.open = true;
    }

    fn append(&mut self, value: &Value) {
        self.current.append(value);
        self.open = true;
    }

    fn cut(&mut self) {
        if self.open && !self.whole {
            self.done.push(std::mem::take(&mut self.current));
            self.open = false;
        }
    }
}

impl Evaluator<'_> {
    /// A word of a command: none, one or many words.
    pub(crate) fn expand(&mut self, word: &tree::Word, out: &mut Vec<Word>) {
        if word.braces
            && let Some((at, texts)) = braces::alternatives(&word.parts)
        {
            for text in texts {
                self.expand_parts(word, Some((at, &text)), out);
            }
            return;
        }
        self.expand_parts(word, None, out);
    }

    fn expand_parts(&mut self, word: &tree::Word, instead: Option<(usize, &str)>, out: &mut Vec<Word>) {
        let mut fields = Fields::default();
        // `$ARGS` as a word by itself that holds several options: each option is shown where it was written, not at
        // `$ARGS`.
        let alone = word.parts.len() == 1;
        for (at, part) in word.parts.iter().enumerate() {
            match (part, instead) {
                (Part::Text { origin, .. }, Some((index, text))) if index == at => {
                    if !text.is_empty() {
                        fields.push(text, Origin { exact: false, ..*origin });
                    }
                }
                _ => self.expand_part(part, alone, &mut fields),
            }
        }
        // The last word has no blank after it to end it.
        fields.cut();
        if !self.spend(weight(&fields.done), word.span) {
            return;
        }
        let room = limits::WORDS.saturating_sub(out.len());
        if fields.done.len() > room {
            self.notes
                .report(Diagnostic::error(Code::TooManyWords, "a command has too many words").at(word.span));
        }
        for value in fields.done.into_iter().take(room) {
            out.push(Word { value, span: word.span });
        }
    }

    fn expand_part(&mut self, part: &Part, alone: bool, fields: &mut Fields) {
        match part {
            Part::Text { text, origin, .. } => fields.push(text, *origin),
            Part::Hole { id, text, origin } => {
                fields.current.push(text, *origin, Some(*id));
                fields.open = true;
            }
            Part::Parameter(parameter) => {
                let span = parameter.span;
                match self.parameter(parameter) {
                    Expanded::One(value) => {
                        self.put(&placed(value, span, alone), parameter.quoted, fields);
                    }
                    Expanded::Operand(parts) => self.expand_operand(parts, parameter.quoted, fields),
                    Expanded::Many(values) => self.join_many(&values, parameter.quoted, span, fields),
                }
            }
            Part::Command { body, span, quoted } => {
                let value = self.substitute(body, *span);
                self.put(&value, *quoted, fields);
            }
            Part::Arithmetic { expression, span, .. } => {
                let expression = self.text_of(expression);
                let value = self.arithmetic_value(&expression, *span);
                fields.append(&value);
            }
            Part::Process { body, span } => {
                // The command that receives the pipe's name may read it as input.
                if !fields.whole {
                    self.input = Some(self.substitute(body, *span));
                }
                let path = self.unknown(HoleKind::Derived, "/dev/fd", *span, Vec::new());
                fields.append(&path);
            }
        }
    }

    /// Adds an expansion, split unless it is quoted or everything is one text.
    fn put(&mut self, value: &Value, quoted: bool, fields: &mut Fields) {
        if quoted || fields.whole {
            fields.append(value);
        } else {
            self.split_into(value, fields);
        }
    }

    /// The word of `${x:-word}`: its own quotes apply, and its unquoted text is split.
    fn expand_operand(&mut self, parts: &[Part], quoted: bool, fields: &mut Fields) {
        if quoted || fields.whole {
            let value = self.text_of(parts);
            fields.append(&value);
            return;
        }
        for part in parts {
            match part {
                Part::Text { text, origin, quoted: false } => {
                    self.split_into(&Value::from_text(text, *origin), fields);
                }
                part => self.expand_part(part, false, fields),
            }
        }
    }

    /// The elements of `$@` or `${a[@]}` joined with the surrounding text.
    fn join_many(&mut self, values: &[Value], quoted: bool, span: Span, fields: &mut Fields) {
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                fields.cut();
                if fields.whole {
                    fields.current.add(" ", span);
                }
            }
            // Unquoted, each element is split again: `${a[@]}` of an element with blanks is several words.
            self.put(value, quoted, fields);
            if fields.done.len() > limits::WORDS {
                return;
            }
        }
    }

    /// Splits an unquoted expansion at blanks, or at the characters of IFS.
    fn split_into(&mut self, value: &Value, fields: &mut Fields) {
        if value.is_empty() || !self.spend(value.weight(), value.origin().unwrap_or_default()) {
            return;
        }
        let separators = self.known("IFS");
        let separates = |c: char| separators.map_or(is_blank(c), |set| set.contains(c));
        let text = value.text();
        // `x$A` with A=" y" is two words, `x$A` with A="y" one: leading and trailing blanks separate it from the
        // surrounding text.
        let first_separates = text.chars().next().is_some_and(separates);
        if first_separates && value.marks().first().is_some_and(|mark| mark.hole.is_none()) {
            fields.cut();
        }
        let last_separates = text.chars().next_back().is_some_and(separates);
        // A hole does not end with a known blank, whatever its name ends with.
        let ends_open = !last_separates || value.marks().last().is_some_and(|mark| mark.hole.is_some());
        // With IFS set, `a,,b` has an empty field; blanks and an unset IFS make none.
        let words = if separators.is_some() { strict_fields(value, &separates) } else { value.fields() };
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                fields.cut();
            }
            fields.append(word);
        }
        if !ends_open {
            fields.cut();
        }
    }

    /// The parts as one text: assignments, quoted words, subjects of `case`.
    pub(crate) fn text_of(&mut self, parts: &[Part]) -> Value {
        // No splitting in assignments and quotes, even of unquoted expansions.
        let mut fields = Fields { whole: true, ..Fields::default() };
        for part in parts {
            self.expand_part(part, parts.len() == 1, &mut fields);
            if fields.current.len() > limits::VALUE_BYTES {
                break;
            }
        }
        let out = fields.current;
        let span = out.origin();
        if !self.spend(out.weight(), span.unwrap_or_default()) {
            return Value::default();
        }
        self.bounded(out, span)
    }

    /// The parts as a pattern, with quoted characters escaped; `None` if something in it is unknown.
    pub(crate) fn pattern_of(&mut self, parts: &[Part]) -> Option<String> {
        let mut out = String::new();
        for part in parts {
            match part {
                // `"*"` in a pattern is a literal star.
                Part::Text { text, quoted: true, .. } => pattern::escape(text, &mut out),
                Part::Text { text, .. } => out.push_str(text),
                other => {
                    let value = self.text_of(std::slice::from_ref(other));
                    let quoted = matches!(other, Part::Parameter(parameter) if parameter.quoted)
                        || matches!(other, Part::Command { quoted: true, .. });
                    let text = value.known()?;
                    if quoted { pattern::escape(text, &mut out) } else { out.push_str(text) }
                }
            }
        }
        Some(out)
    }
}

/// The value marked with the place of its expansion, unless that is the whole word and the value is several words.
fn placed(mut value: Value, span: Span, alone: bool) -> Value {
    if !alone || !value.text().contains(is_blank) {
        value.set_via(span);
    }
    value
}

/// Fields under a non-default IFS: consecutive blanks in it count as one separator, every other character ends one
/// field.
pub(crate) fn strict_fields(value: &Value, separates: &dyn Fn(char) -> bool) -> Vec<Value> {
    let mut fields = Vec::new();
    let (mut start, mut at) = (0, 0);
    for piece in value.pieces() {
        for c in piece.text.chars() {
            let end = at + c.len_utf8();
            if piece.hole.is_none() && separates(c) {
                if at > start || !is_blank(c) {
                    fields.push(value.part(start, at));
                }
                start = end;
            }
            at = end;
        }
    }
    if start < at {
        fields.push(value.rest(start));
    }
    fields
}
