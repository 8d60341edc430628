//! `printf` formats and the escapes of `echo -e`.

use super::super::limits;
use super::super::value::{Value, Word};
use shardscope_source::Span;

/// The text with `\n`, `\t` and the like replaced.
pub(crate) fn unescape(value: &Value) -> Value {
    if !value.text().contains('\\') {
        return value.clone();
    }
    let mut out = Value::default();
    for piece in value.pieces() {
        // Done piece by piece, so that options without an escape keep their exact place.
        if piece.hole.is_some() || !piece.text.contains('\\') {
            piece.add_to(&mut out);
        } else {
            piece.instead(&unescape_text(piece.text), &mut out);
        }
    }
    out
}

fn unescape_text(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('e') => out.push('\u{1b}'),
            Some('\\') => out.push('\\'),
            Some('"') => out.push('"'),
            // An unknown escape is printed unchanged, as in bash.
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    out
}

/// The value, quoted if a shell that reads it again would otherwise split it. Bash itself may use backslashes
/// instead; the result when read again is the same.
pub(crate) fn quoted(value: &Value) -> Value {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !value.is_empty() && value.pieces().all(|piece| piece.hole.is_some() || piece.text.bytes().all(plain))
    {
        return value.clone();
    }
    let place = value.origin().unwrap_or_default();
    let mut out = Value::computed("'", place);
    for piece in value.pieces() {
        if piece.hole.is_none() && piece.text.contains('\'') {
            piece.instead(&piece.text.replace('\'', "'\\''"), &mut out);
        } else {
            piece.add_to(&mut out);
        }
    }
    out.add("'", place);
    out
}

/// One conversion of a format: `%05.2f`.
struct Conversion<'a> {
    flags: &'a str,
    width: Option<usize>,
    precision: Option<usize>,
    kind: char,
    length: usize,
}

/// What printf prints; the format is reused as long as arguments are left.
pub(crate) fn printf(format: &Value, arguments: &[Word], span: Span) -> Value {
    let format = unescape(format);
    let mut out = Value::default();
    let mut rest = arguments.iter();
    loop {
        let before = rest.len();
        once(&format, &mut rest, span, &mut out);
        // A format that takes no argument would be reused forever.
        if rest.len() == 0 || rest.len() == before || out.len() > limits::VALUE_BYTES {
            return out;
        }
    }
}

fn once<'a>(format: &Value, rest: &mut impl Iterator<Item = &'a Word>, span: Span, out: &mut Value) {
    let text = format.text();
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find('%')) {
        out.append(&format.part(at, at + offset));
        at += offset;
        let Some(conversion) = conversion(text.get(at + 1..).unwrap_or("")) else {
            out.append(&format.part(at, at + 1));
            at += 1;
            continue;
        };
        at += 1 + conversion.length;
        if conversion.kind == '%' {
            out.add("%", span);
            continue;
        }
        let empty = Value::default();
        let argument = rest.next().map_or(&empty, |word| &word.value);
        convert(&conversion, argument, span, out);
    }
    out.append(&format.rest(at));
}

fn conversion(text: &str) -> Option<Conversion<'_>> {
    let flags_end = text.find(|c| !"-+ #0".contains(c))?;
    let (flags, rest) = text.split_at(flags_end);
    let width_end = rest.find(|c: char| !c.is_ascii_digit())?;
    let (width, rest) = rest.split_at(width_end);
    let mut length = flags_end + width_end;
    let mut precision = None;
    let mut rest = rest;
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|c: char| !c.is_ascii_digit())?;
        precision = Some(after.get(..end)?.parse().unwrap_or(0));
        length += 1 + end;
        rest = after.get(end..)?;
    }
    let kind = rest.chars().next().filter(|kind| "sdiuqbcfgex%".contains(*kind))?;
    // A hostile `%999999999d` would fill memory.
    let width = width.parse().ok().map(|width: usize| width.min(1000));
    Some(Conversion { flags, width, precision, kind, length: length + 1 })
}

fn convert(conversion: &Conversion<'_>, argument: &Value, span: Span, out: &mut Value) {
    let plain = conversion.width.is_none() && conversion.precision.is_none();
    if conversion.kind == 'q' {
        out.append(&quoted(argument));
        return;
    }
    // An unknown keeps its pieces; its width is not known either.
    if argument.has_holes() || (plain && conversion.kind == 's') {
        out.append(argument);
        return;
    }
    if plain && conversion.kind == 'b' {
        out.append(&unescape(argument));
        return;
    }
    let text = argument.text().trim();
    let body = match conversion.kind {
        'd' | 'i' | 'u' => integer(text).to_string(),
        'x' => format!("{:x}", integer(text)),
        'f' | 'g' | 'e' => {
            let number: f64 = text.parse().unwrap_or(0.0);
            let digits = conversion.precision.unwrap_or(6).min(40);
            match conversion.kind {
                'f' => format!("{number:.digits$}"),
                'e' => scientific(number, digits),
                _ => general(number, digits.max(1)).unwrap_or_else(|| {
                    let short = scientific(number, digits.max(1) - 1);
                    let (figure, power) = short.split_once('e').unwrap_or((&short, "+00"));
                    format!("{}e{power}", plain_end(figure))
                }),
            }
        }
        'c' => text.chars().take(1).collect(),
        _ => argument.text().chars().take(conversion.precision.unwrap_or(usize::MAX)).collect(),
    };
    let missing = conversion.width.unwrap_or(0).saturating_sub(body.chars().count());
    let left = conversion.flags.contains('-');
    let zeros = !left && conversion.flags.contains('0') && conversion.kind != 's';
    let padding = if zeros { "0" } else { " " }.repeat(missing);
    // Zeros go between the sign and the digits.
    let (sign, digits) = match body.strip_prefix('-') {
        Some(digits) if zeros => ("-", digits),
        _ => ("", body.as_str()),
    };
    let (before, after) = if left { ("", padding.as_str()) } else { (padding.as_str(), "") };
    let padded = format!("{sign}{before}{digits}{after}");
    out.add(&padded, argument.origin().unwrap_or(span));
}

/// The number that a text starts with, as C reads it: with prefix `0x` for base 16 and `0` for base 8.
fn integer(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // `'A` is the character's code.
    if let Some(c) = digits.strip_prefix(['\'', '"']).and_then(|rest| rest.chars().next()) {
        return i64::from(u32::from(c));
    }
    let (base, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let number = i64::from_str_radix(digits.get(..end).unwrap_or(""), base).unwrap_or(0);
    if negative { -number } else { number }
}

/// C's `%e`.
fn scientific(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$e}");
    let Some((figure, power)) = text.split_once('e') else { return text };
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{figure}e{sign}{power:0>2}")
}

/// C's `%g` with this many significant digits; `None` if it would be written with an exponent.
pub(super) fn general(number: f64, digits: usize) -> Option<String> {
    let rounded = format!("{number:.*e}", digits.checked_sub(1)?);
    let power: i32 = rounded.split_once('e')?.1.parse().ok()?;
    let behind = i32::try_from(digits).ok()? - 1 - power;
    if power < -4 || behind < 0 {
        return None;
    }
    let behind = usize::try_from(behind).ok()?;
    Some(plain_end(&format!("{number:.behind$}")).to_owned())
}

/// The number without trailing zeros in its fraction.
fn plain_end(figure: &str) -> &str {
    if figure.contains('.') { figure.trim_end_matches('0').trim_end_matches('.') } else { figure }
}
