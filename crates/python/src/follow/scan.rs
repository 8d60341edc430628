//! A launcher's functions and classes, and the parts of its statements.

use crate::statements::{Statement, statements};

/// A function at the top of a program, or of a class.
pub(crate) struct Function<'a> {
    /// The class of which it is a method.
    pub(crate) class: &'a str,
    pub(crate) name: &'a str,
    /// Name, annotation, default.
    pub(crate) parameters: Vec<(&'a str, &'a str, Option<&'a str>)>,
    pub(crate) is_property: bool,
    pub(crate) body: Vec<Statement<'a>>,
}

/// A class at the top of a program.
pub(crate) struct Class<'a> {
    pub(crate) name: &'a str,
    pub(crate) bases: &'a str,
    /// Without its methods.
    pub(crate) body: Vec<Statement<'a>>,
}

/// The top-level items of a program.
#[derive(Default)]
pub(crate) struct Program<'a> {
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) classes: Vec<Class<'a>>,
    pub(crate) top: Vec<Statement<'a>>,
}

pub(crate) fn program(text: &str) -> Program<'_> {
    let mut out = Program::default();
    let all = statements(text);
    let mut decorator = "";
    let mut at = 0;
    while let Some(statement) = all.get(at) {
        let block = inner(&all, at);
        at += 1 + block.len();
        match keyword(statement.text) {
            "def" => out.functions.push(function(statement, "", false, block)),
            "class" => {
                let name = head(statement.text).split('(').next().unwrap_or("").trim();
                let mut class = Class { name, bases: bracketed(statement.text), body: Vec::new() };
                let mut index = 0;
                while let Some(statement) = block.get(index) {
                    let body = inner(block, index);
                    index += 1 + body.len();
                    if keyword(statement.text) == "def" {
                        out.functions.push(function(statement, name, decorator == "@property", body));
                    } else if body.is_empty() && !statement.text.starts_with('@') {
                        class.body.push(*statement);
                    }
                    decorator = statement.text;
                }
                out.classes.push(class);
            }
            _ => out.top.extend_from_slice(all.get(at - 1 - block.len()..at).unwrap_or(&[])),
        }
    }
    out
}

/// The statements that are indented below one.
pub(crate) fn inner<'s, 'a>(all: &'s [Statement<'a>], at: usize) -> &'s [Statement<'a>] {
    let indent = all.get(at).map_or(0, |statement| statement.indent);
    let rest = all.get(at + 1..).unwrap_or(&[]);
    let length = rest.iter().take_while(|statement| statement.indent > indent).count();
    rest.get(..length).unwrap_or(&[])
}

fn function<'a>(
    statement: &Statement<'a>,
    class: &'a str,
    is_property: bool,
    body: &[Statement<'a>],
) -> Function<'a> {
    let head = statement.text.split("->").next().unwrap_or("");
    let name = head.trim_start_matches("def").split('(').next().unwrap_or("").trim();
    let parameters =
        parts(bracketed(head), b',').into_iter().map(str::trim).filter(|one| !matches!(*one, "" | "*"));
    let parameters = parameters.map(|written| {
        let (named, default) = match split(written, b'=') {
            Some((named, default)) => (named, Some(default.trim())),
            None => (written, None),
        };
        let (name, annotation) = named.split_once(':').unwrap_or((named, ""));
        (name.trim(), annotation.trim(), default)
    });
    Function { class, name, parameters: parameters.collect(), is_property, body: body.to_vec() }
}

/// What is inside a statement's brackets.
fn bracketed(text: &str) -> &str {
    let inside = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    inside.map_or("", |(inside, _)| inside)
}

/// Splits a text at the first `sign` outside of brackets and quotes.
fn split(text: &str, sign: u8) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0_i32, None);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (None, byte) if byte == sign && depth == 0 => {
                return Some((text.get(..at)?, text.get(at + 1..)?));
            }
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The parts of a text between such characters.
pub(crate) fn parts(text: &str, sign: u8) -> Vec<&str> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some((part, behind)) = split(rest, sign) {
        out.push(part);
        rest = behind;
    }
    out.push(rest);
    out
}

/// Target, operator before `=`, value; `None` for a statement that assigns nothing.
pub(crate) fn assignment(text: &str) -> Option<(&str, &str, &str)> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b',' | b' ');
    let at = text.bytes().take_while(|byte| plain(byte)).count();
    let rest = text.get(at..)?;
    let (target, sign, value) = match rest.bytes().next()? {
        // `options["key"] =`
        b'[' => {
            let (target, value) = split(text, b'=')?;
            (target, "", value)
        }
        // `name: Type =`
        b':' => (text.get(..at)?, "", split(rest, b'=')?.1),
        _ => {
            let sign =
                ["//", "+", "-", "*", "|"].into_iter().find(|sign| rest.starts_with(sign)).unwrap_or("");
            (text.get(..at)?, sign, rest.get(sign.len()..)?.strip_prefix('=')?)
        }
    };
    let target = target.trim();
    (!value.starts_with('=') && !target.is_empty()).then(|| (target, sign, value.trim()))
}

/// The word that a statement begins with.
pub(crate) fn keyword(text: &str) -> &str {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or("")
}

/// The text between a keyword and the final colon.
pub(crate) fn head(text: &str) -> &str {
    let text = split(text, b'#').map_or(text, |(before, _)| before);
    text.get(keyword(text).len()..).unwrap_or("").trim().trim_end_matches(':').trim()
}
