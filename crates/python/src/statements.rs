//! The statements of a Python program, as text.

/// A statement with its place and indentation. Lines joined by brackets are one statement.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Byte of the program at which it begins.
    pub start: usize,
    /// Indentation in characters.
    pub indent: usize,
    /// As written, including comments.
    pub text: &'a str,
}

/// The statements of a program, without comments on separate lines.
pub fn statements(text: &str) -> Vec<Statement<'_>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let (mut at, mut line) = (0, 0);
    while at < bytes.len() {
        let indent =
            bytes.get(at..).unwrap_or(&[]).iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        at += indent;
        line = line.max(at);
        let start = at;
        at = statement_end(text, at);
        let written = text.get(start..at).unwrap_or("").trim_end();
        if !written.is_empty() && !written.starts_with('#') {
            out.push(Statement { start, indent, text: written });
        }
        at += 1;
    }
    out
}

/// Where the statement that begins at `at` ends: the first newline outside brackets and strings.
pub fn statement_end(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                at += text.get(at..).and_then(|rest| rest.find('\n')).unwrap_or(text.len() - at);
                continue;
            }
            b'"' | b'\'' => {
                at = string_end(bytes, at);
                continue;
            }
            b'\\' if bytes.get(at + 1) == Some(&b'\n') => at += 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Just after the string that opens at `at`; triple-quoted ones may span lines.
pub fn string_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let triple = bytes.get(at + 1) == Some(&quote) && bytes.get(at + 2) == Some(&quote);
    let mut next = at + if triple { 3 } else { 1 };
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 1,
            b'\n' if !triple => return next,
            sign if sign == quote => {
                let closes =
                    !triple || (bytes.get(next + 1) == Some(&quote) && bytes.get(next + 2) == Some(&quote));
                if closes {
                    return next + if triple { 3 } else { 1 };
                }
            }
            _ => {}
        }
        next += 1;
    }
    bytes.len()
}
