//! What an unquoted scalar may mean, in the spellings of JSON, YAML, TOML and Python alike.

/// Largest exponent accepted in a whole number such as `1e9`: 10^19 is close to the limit of 64 bits.
const MAX_EXPONENT: u32 = 18;

/// Whether the text stands for no value.
pub(super) fn is_null(text: &str) -> bool {
    text.is_empty() || matches!(text, "~" | "null" | "Null" | "NULL" | "None")
}

/// A boolean in YAML 1.1's words (which PyYAML reads); numbers are not booleans.
pub fn flag(text: &str) -> Option<bool> {
    const WORDS: [(&str, bool); 6] =
        [("true", true), ("false", false), ("yes", true), ("no", false), ("on", true), ("off", false)];
    WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|&(_, value)| value)
}

/// A whole number: digits with `_` between them, or a decimal spelling of one (`1e6`, `5.0e+08`, `16.0`).
pub fn whole(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
        return digits
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| without_blanks(digits).parse().ok())?;
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (head, tail) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // `16.0` is whole, `0.25` is not: the exponent must cover the digits after the point. Decided on the digits,
    // since a double would round large token counts.
    let tail = tail.trim_end_matches('0');
    let exponent: u32 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
    let shift = exponent.checked_sub(u32::try_from(tail.len()).ok()?).filter(|_| exponent <= MAX_EXPONENT)?;
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if head.is_empty() || !all_digits(head) || !all_digits(tail) {
        return None;
    }
    let value: u64 = format!("{head}{tail}").parse().ok()?;
    value.checked_mul(10_u64.checked_pow(shift)?)
}

/// A finite number, digits grouped by `_` or not; none for words, `inf` and `nan` among them.
pub(super) fn real(text: &str) -> Option<f64> {
    // Rust also parses `nan`, `inf` and `infinity`, which are plain words here.
    let plausible = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let number: Option<f64> = if plausible { without_blanks(text).parse().ok() } else { None };
    number.filter(|number| number.is_finite())
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| *c != '_').collect()
}

#[cfg(test)]
mod tests {
    use super::{flag, real, whole};

    #[test]
    fn numbers_in_every_spelling() {
        let cases = [
            ("8192", Some(8192)),
            ("9_765_625", Some(9_765_625)),
            ("1e6", Some(1_000_000)),
            ("5.0e+08", Some(500_000_000)),
            ("2.5e1", Some(25)),
            ("16.0", Some(16)),
            ("0.25", None),
            ("2.55e1", None),
            ("-3", None),
            ("1e99", None),
            ("99999999999999999999", None),
            ("_1", None),
            ("e5", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(whole(text), expected, "{text}");
        }
        assert_eq!(real("1e-5"), Some(1e-5));
        assert_eq!(real("-.5"), Some(-0.5));
        assert_eq!(real("inf"), None);
        assert_eq!(real("-inf"), None);
        assert_eq!(flag("True"), Some(true));
        assert_eq!(flag("off"), Some(false));
        assert_eq!(flag("1"), None);
    }
}
