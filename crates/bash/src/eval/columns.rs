//! Programs that cut texts: `cut`, `tr`, `head` and `tail`.

use super::super::value::Value;
use super::texts::each_line;
use shardscope_source::Span;

/// `cut -d= -f2` and its other spellings.
pub(super) fn cut(input: &Value, arguments: &[&str]) -> Option<Value> {
    let mut delimiter = '\t';
    let mut fields = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let (flag, value) = (word.get(..2)?, word.get(2..)?);
        let value = if value.is_empty() { words.next()? } else { value };
        match flag {
            "-d" => delimiter = value.chars().next()?,
            "-f" => fields = Some(value),
            _ => return None,
        }
    }
    let fields = fields?;
    let (first, last) = match fields.split_once('-') {
        Some((low, "")) => (low.parse().unwrap_or(1), usize::MAX),
        Some((low, high)) => (low.parse().unwrap_or(1), high.parse().ok()?),
        None => (fields.parse().ok()?, fields.parse().ok()?),
    };
    let mut out = Value::default();
    each_line(input.text(), &mut |content, start| {
        let (mut from, mut to, mut at) = (None, 0, 0);
        for (index, field) in content.split(delimiter).enumerate() {
            let end = at + field.len();
            // A line without the delimiter is kept whole.
            // POSIX, without `-s`.
            if field.len() == content.len() || (first..=last).contains(&(index + 1)) {
                from = from.or(Some(at));
                to = end;
            }
            at = end + delimiter.len_utf8();
        }
        out.append(&input.part(start + from.unwrap_or(to), start + to));
        out.add("\n", Span::default());
        Some(())
    });
    // An unknown may hold the delimiter: only a literal one shows where the fields are.
    let cut_hole = input.has_holes() && !input.text().contains(delimiter);
    if cut_hole { None } else { Some(out) }
}

/// `tr a-z A-Z`, `tr -d ,`.
pub(super) fn tr(text: &str, arguments: &[&str]) -> Option<String> {
    let [first, second, ..] = arguments else { return None };
    let deletes = *first == "-d";
    let from = set_of(if deletes { second } else { first })?;
    let to = if deletes { Vec::new() } else { set_of(second)? };
    let last = to.last();
    if last.is_none() && !deletes {
        return None;
    }
    let mut out = String::new();
    for c in text.chars() {
        match from.iter().position(|known| *known == c) {
            None => out.push(c),
            Some(_) if deletes => {}
            // GNU's rule: a second set that is too short goes on with its last character.
            Some(at) => out.push(*to.get(at).or(last)?),
        }
    }
    Some(out)
}

/// The characters that a set of `tr` names; ranges are written out.
fn set_of(text: &str) -> Option<Vec<char>> {
    let text = match text {
        "[:lower:]" => "a-z",
        "[:upper:]" => "A-Z",
        "[:space:]" => " \t\n\r",
        other if other.contains("[:") => return None,
        other => other,
    };
    let chars: Vec<char> = text.replace("\\n", "\n").replace("\\t", "\t").chars().collect();
    let mut out = Vec::new();
    let mut rest = chars.as_slice();
    while let [c, after @ ..] = rest {
        rest = after;
        let mut high = *c;
        if let ['-', last, after @ ..] = rest {
            (high, rest) = (*last, after);
        }
        let (first, last) = (u32::from(*c), u32::from(high));
        for code in (first..=last).take(256) {
            out.extend(char::from_u32(code));
        }
    }
    Some(out)
}

/// The first or last lines of a text: 10, unless `-n` or a bare number says how many.
pub(super) fn ends(input: &Value, first: bool, arguments: &[&str]) -> Option<Value> {
    let text = input.known()?;
    let mut count = None;
    for word in arguments {
        let digits = word.trim_start_matches(['-', 'n']).parse::<usize>().ok();
        if digits.is_none() && !word.starts_with('-') {
            return None;
        }
        // `-n 5`, `-n5`, `-5`: the dash and the letter are passed over.
        count = count.or(digits);
    }
    let count = count.unwrap_or(10);
    let lines = text.split_inclusive('\n');
    let kept: usize = if first {
        lines.take(count).map(str::len).sum()
    } else {
        lines.rev().take(count).map(str::len).sum()
    };
    Some(if first { input.part(0, kept) } else { input.rest(text.len() - kept) })
}
