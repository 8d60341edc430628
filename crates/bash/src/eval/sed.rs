//! `sed "s/KEY/value/"` over known text, which is how templates of DeepSpeed configurations are filled in.

use super::super::value::{Value, Word};
use super::regex::{Regex, Syntax};
use super::state::Evaluator;
use super::texts::each_line;

struct Substitution {
    pattern: Regex,
    with: Value,
    all: bool,
}

/// What sed prints; `None` unless it only substitutes, with supported expressions, in known text.
pub(crate) fn run(shell: &mut Evaluator<'_>, arguments: &[Word]) -> Option<Value> {
    let mut syntax = Syntax::Basic;
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.text() {
            "-e" | "--expression" => scripts.push(&words.next()?.value),
            "-E" | "-r" => syntax = Syntax::Extended,
            text if text.starts_with('-') => return None,
            _ if scripts.is_empty() && files.is_empty() => scripts.push(&word.value),
            _ => files.push(&word.value),
        }
    }
    let mut substitutions = Vec::new();
    for script in scripts {
        read(script, syntax, &mut substitutions)?;
    }
    let mut content = match files.as_slice() {
        [] => shell.input.clone()?,
        [file] => shell.readable(file)?,
        _ => return None,
    };
    for substitution in &substitutions {
        content = apply(&content, substitution)?;
    }
    Some(content)
}

/// Reads `s/a/b/g; s#c#d#`, which may contain holes in its replacements.
fn read(script: &Value, syntax: Syntax, out: &mut Vec<Substitution>) -> Option<()> {
    let text = script.text();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\n', ';', '\t']);
        if rest.is_empty() {
            return Some(());
        }
        // sed accepts any character after the `s`; a letter or digit would be another command.
        let delimiter = rest.get(1..)?.chars().next().filter(|c| !c.is_ascii_alphanumeric())?;
        let mut parts = rest.splitn(4, delimiter);
        let (command, pattern, with) = (parts.next()?, parts.next()?, parts.next()?);
        if command != "s" {
            return None;
        }
        // The third delimiter must be present. One escaped in the pattern would cut it after a backslash, and no
        // pattern may end with a backslash.
        let after = parts.next()?;
        let all = after.starts_with('g');
        // Where the replacement ends; it is preceded by the pattern and two delimiters.
        let end = text.len() - after.len() - delimiter.len_utf8();
        let start = end - with.len();
        let before = start - delimiter.len_utf8();
        let pattern = Regex::new(script.part(before - pattern.len(), before).known()?, syntax, false)?;
        let with = script.part(start, end);
        rest = after.strip_prefix('g').unwrap_or(after);
        // `&` and `\1` refer to the match, which is not inserted here.
        if with.text().contains(['\\', '&']) {
            return None;
        }
        out.push(Substitution { pattern, with, all });
        if out.len() > 50 {
            return None;
        }
    }
}

fn apply(content: &Value, substitution: &Substitution) -> Option<Value> {
    let mut out = Value::default();
    let mut done = 0;
    each_line(content.text(), &mut |line, start| {
        let mut at = 0;
        loop {
            let Some(found) = substitution.pattern.find(line, at)? else { return Some(()) };
            // An empty match would be found at the same place forever; finding the next one is not supported.
            if found.is_empty() && substitution.all {
                return None;
            }
            // The text between matches is copied with its places, across lines without a match.
            out.append(&content.part(done, start + found.start));
            out.append(&substitution.with);
            at = found.end;
            done = start + at;
            if !substitution.all {
                return Some(());
            }
        }
    })?;
    out.append(&content.rest(done));
    Some(out)
}
