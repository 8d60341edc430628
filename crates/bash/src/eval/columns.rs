//! Programs that extract parts of a text: `cut`, `tr`, `head` and `tail`.

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
            // POSIX: without `-s`, a line without the delimiter is kept as it is.
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
    // An unknown may contain the delimiter: only a literal one shows where the fields are.
    let cut_hole = input.has_holes() && !input.text().contains(delimiter);
    if cut_hole { None } else { Some(out) }
}

/// `tr a-z A-Z`, `tr -d ,`, `tr -cd 0-9`, `tr -s ' '`.
pub(super) fn tr(text: &str, arguments: &[&str]) -> Option<String> {
    let flags = arguments.iter().take_while(|word| word.len() > 1 && word.starts_with('-')).count();
    let (flags, sets) = arguments.split_at(flags);
    let flags: String = flags.iter().map(|word| word.get(1..).unwrap_or("")).collect();
    if flags.chars().any(|flag| !"cCds".contains(flag)) {
        return None;
    }
    let (deletes, squeezes) = (flags.contains('d'), flags.contains('s'));
    let from = set_of(sets.first()?)?;
    let to = match *sets {
        [_] => Vec::new(),
        // Deleting and squeezing at once is not computed.
        [_, second] if !deletes => set_of(second)?,
        _ => return None,
    };
    if (deletes && squeezes) || (to.is_empty() && !deletes && !squeezes) {
        return None;
    }
    let others = flags.contains(['c', 'C']);
    let last = to.last();
    let squeezed = |c: char| match last {
        None => from.contains(&c) != others,
        Some(_) => to.contains(&c),
    };
    let mut out = String::new();
    for c in text.chars() {
        let place = from.iter().position(|known| *known == c);
        let c = match last {
            _ if place.is_some() == others => c,
            None if deletes => continue,
            None => c,
            // GNU's rule: a second set that is too short is extended with its last character.
            Some(last) => *place.and_then(|at| to.get(at)).unwrap_or(last),
        };
        if !(squeezes && squeezed(c) && out.ends_with(c)) {
            out.push(c);
        }
    }
    Some(out)
}

/// The characters that a set of `tr` names; ranges are expanded.
fn set_of(text: &str) -> Option<Vec<char>> {
    let text = match text {
        "[:lower:]" => "a-z",
        "[:upper:]" => "A-Z",
        "[:space:]" => " \t\n\r",
        "[:digit:]" => "0-9",
        "[:alpha:]" => "A-Za-z",
        "[:alnum:]" => "0-9A-Za-z",
        // Other classes, `[x*3]` and octal numbers.
        other if other.contains("[:") || other.contains("[=") || other.contains("*]") => return None,
        other => other,
    };
    let text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r");
    if text.len() > 1 && text.contains('\\') {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
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

/// The first or last lines (bytes with `-c`) of a text: 10, unless `-n` or a bare number states a count. `head -n -2`
/// leaves out the last two, and `tail -n +2` starts with the second.
pub(super) fn ends(input: &Value, first: bool, arguments: &[&str]) -> Option<Value> {
    let text = input.known()?;
    let mut count = "10";
    let mut bytes = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix('-')?;
        count = match option.chars().next()? {
            sign @ ('n' | 'c') => {
                bytes = sign == 'c';
                let value = option.get(1..)?;
                if value.is_empty() { words.next()? } else { value }
            }
            '0'..='9' => option,
            // Long options, and options for file names or following.
            _ => return None,
        };
    }
    let sign = if first { '-' } else { '+' };
    let number: usize = count.strip_prefix(sign).unwrap_or(count).parse().ok()?;
    let turned = count.starts_with(sign);
    let places: Vec<usize> = if bytes {
        (0..=text.len()).collect()
    } else {
        std::iter::once(0)
            .chain(text.split_inclusive('\n').scan(0, |at, line| {
                *at += line.len();
                Some(*at)
            }))
            .collect()
    };
    let all = places.len() - 1;
    let at = match (first, turned) {
        (true, false) => number.min(all),
        (true, true) | (false, false) => all.saturating_sub(number),
        (false, true) => number.saturating_sub(1).min(all),
    };
    let cut = *places.get(at)?;
    if !text.is_char_boundary(cut) {
        return None;
    }
    Some(if first { input.part(0, cut) } else { input.rest(cut) })
}
