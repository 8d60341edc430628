//! Option values with characters that bash would not accept unquoted, as people type and paste them:
//! `--moe-layer-freq ([0]*3+[1]*58)`, `--pipeline-model-parallel-layout Et*3|(tt|)*14tL`.

use super::super::tree::{Part, Word};
use super::cursor::Parser;
use super::list::literal;
use shardscope_source::{Code, Diagnostic};

/// Options whose values are expressions with parentheses and bars.
const EXPRESSIONS: &[&str] =
    &["--moe-layer-freq", "--pipeline-model-parallel-layout", "--hybrid-layer-pattern"];

impl Parser<'_> {
    /// The value of one of these options after `before`, if it is unquoted here.
    pub(crate) fn bare_expression(&mut self, before: Option<&Word>) -> Option<Word> {
        let option = literal(&before?.parts)?;
        if !EXPRESSIONS.contains(&option) {
            return None;
        }
        let rest = self.bytes.get(self.at..self.end)?;
        let length = rest.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(rest.len());
        let value = rest.get(..length)?;
        // If it contains a quote, a variable or an escape, it was written for a shell, and the usual rules apply.
        let quoted = value.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'$' | b'\\'));
        if quoted || !value.iter().any(|byte| matches!(byte, b'(' | b'|')) {
            return None;
        }
        let (start, end) = (self.at, self.at + length);
        let text = self.text.get(start..end)?.to_owned();
        let hint_text = format!("{option} '{text}'");
        self.at = end;
        self.notes.report(
            Diagnostic::warning(
                Code::UnquotedExpression,
                format!("bash rejects {text} without quotes; it is read as if quoted"),
            )
            .at(self.span(start, end))
            .hint(hint_text),
        );
        let part = Part::Text { text, origin: self.origin(start, end), quoted: true };
        Some(Word { parts: vec![part], span: self.span(start, end), braces: false })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, evaluate};
    use shardscope_source::{Code, Source};

    #[test]
    fn expressions_without_quotes_are_taken_as_they_stand() {
        let line = "python train.py --moe-layer-freq ([0]*3+[1]*58) --pipeline-model-parallel-layout Et*3|(tt|)*14tL --bf16";
        let script = evaluate(&Source::new(line), &Environment::default());
        let words: Vec<&str> = script.commands[0].words.iter().map(|word| word.text()).collect();
        assert_eq!(words.join(" "), line);
        let codes: Vec<Code> = script.diagnostics.iter().map(|said| said.code).collect();
        assert_eq!(codes, [Code::UnquotedExpression; 2]);
    }
}
