//! Values as written in texts.

use shardscope_plan::{Field, SettingValue, ValueKind};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// A value that its setting does not accept.
#[derive(Clone, Debug, PartialEq)]
pub struct BadValue {
    field: Field,
    fault: Fault,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    NoCount(String),
    TooSmall { value: String, least: u64 },
    TooLarge { value: String, most: u64 },
    NoNumber(String),
    OutOfRange { value: String, least: f64, most: f64 },
    NoTruth(String),
    NoSuchWord { word: String, words: &'static [&'static str] },
}

impl Display for BadValue {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let name = self.field.name();
        match &self.fault {
            Fault::NoCount(text) => write!(formatter, "{name} takes a whole number, not {}", shown(text)),
            Fault::TooSmall { value, least } => {
                write!(formatter, "{name} is {value}, and must be at least {least}")
            }
            Fault::TooLarge { value, most } => {
                write!(formatter, "{name} is {}, above the limit of {most}", shown(value))
            }
            Fault::NoNumber(text) => write!(formatter, "{name} takes a number, not {}", shown(text)),
            Fault::OutOfRange { value, least, most } => {
                write!(formatter, "{name} is {}, and must lie between {least} and {most}", shown(value))
            }
            Fault::NoTruth(text) => write!(formatter, "{name} takes true or false, not {}", shown(text)),
            Fault::NoSuchWord { word, words } => {
                write!(formatter, "{name} takes one of {}, not {}", words.join(", "), shown(word))
            }
        }
    }
}

impl Error for BadValue {}

impl BadValue {
    /// The words that the setting accepts, if it only accepts words.
    pub(super) fn choices(&self) -> &'static [&'static str] {
        match self.fault {
            Fault::NoSuchWord { words, .. } => words,
            _ => &[],
        }
    }
}

/// Parses a value for its setting.
///
/// # Errors
/// What the setting accepts, and what the text has instead.
pub(super) fn parse(field: Field, text: &str) -> Result<SettingValue, BadValue> {
    value(field, text).map_err(|fault| BadValue { field, fault })
}

/// Whether a setting accepts a text as its value.
///
/// # Errors
/// What the setting accepts, and what the text has instead.
pub fn fitting(field: Field, text: &str) -> Result<(), BadValue> {
    // Empty and null cancel a statement, which is valid for every setting.
    if says_nothing(field, text) { Ok(()) } else { parse(field, text).map(drop) }
}

fn value(field: Field, text: &str) -> Result<SettingValue, Fault> {
    let text = text.trim();
    match field.kind() {
        ValueKind::Count(least, most) => count(text, least, most).map(SettingValue::Int),
        ValueKind::Real(least, most) => real(text, least, most).map(SettingValue::Real),
        ValueKind::Flag => truth(text).map(SettingValue::Bool),
        ValueKind::Word(words) => word(field, text, words).map(SettingValue::Text),
        ValueKind::Text => Ok(SettingValue::Text(text.to_owned())),
        ValueKind::Counts | ValueKind::Words => {
            let mut values = Vec::new();
            // Lists come from command lines, YAML, JSON and Python's repr, in which all of these are separators.
            for one in text.split([' ', ',', '\t', '[', ']', '(', ')', '\'', '"']) {
                if !one.is_empty() {
                    values.push(match field.kind() {
                        // Far from overflow even if a few are multiplied.
                        ValueKind::Counts => SettingValue::Int(count(one, 0, u64::MAX >> 16)?),
                        _ => SettingValue::Text(one.to_owned()),
                    });
                }
            }
            Ok(SettingValue::List(values))
        }
    }
}

/// Whether a text means that there is no value, in any of the supported formats. `none` is a value if it is one of the
/// setting's words.
pub(super) fn says_nothing(field: Field, text: &str) -> bool {
    let text = text.trim();
    let is_none = text.eq_ignore_ascii_case("none");
    let a_word = match field.kind() {
        // If `none` is a choice (recompute, CUDA graphs) it states something.
        ValueKind::Word(words) => words.contains(&"none"),
        // For these, `none` differs from no statement, for example no bias in the linear mixer.
        _ => matches!(field, Field::MoeRouterLoadBalancingType | Field::LinearBiases | Field::WholeLinears),
    };
    is_none && !a_word || ["", "null", "~"].iter().any(|nothing| text.eq_ignore_ascii_case(nothing))
}

fn count(text: &str, least: u64, most: u64) -> Result<u64, Fault> {
    // Underscores are allowed in numbers in Python and YAML.
    let digits: String = text.strip_prefix('+').unwrap_or(text).chars().filter(|c| *c != '_').collect();
    // A whole number with an empty fraction (4096.0), which may occur in YAML and JSON.
    let whole = match digits.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => digits.as_str(),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A negative number is out of range, which is a more helpful message than "not a number".
    if whole.strip_prefix('-').is_some_and(is_number) {
        return Err(Fault::TooSmall { value: text.to_owned(), least });
    }
    if !is_number(whole) {
        return Err(Fault::NoCount(text.to_owned()));
    }
    match whole.parse::<u64>() {
        Ok(value) if value < least => Err(Fault::TooSmall { value: value.to_string(), least }),
        Ok(value) if value <= most => Ok(value),
        // A number with too many digits for u64 is too large for any setting.
        _ => Err(Fault::TooLarge { value: whole.to_owned(), most }),
    }
}

fn real(text: &str, least: f64, most: f64) -> Result<f64, Fault> {
    match text.parse::<f64>() {
        // NaN is in no range, so it is rejected here and never reaches an estimate.
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err(Fault::OutOfRange { value: text.to_owned(), least, most }),
        Err(_) => Err(Fault::NoNumber(text.to_owned())),
    }
}

fn truth(text: &str) -> Result<bool, Fault> {
    const TRUTHS: [&str; 8] = ["true", "1", "yes", "on", "false", "0", "no", "off"];
    match TRUTHS.iter().position(|word| word.eq_ignore_ascii_case(text)) {
        // The first four are true.
        Some(at) => Ok(at < 4),
        None => Err(Fault::NoTruth(text.to_owned())),
    }
}

fn word(field: Field, text: &str, words: &'static [&'static str]) -> Result<String, Fault> {
    let meant = super::synonyms::word(field, text);
    // Ignoring case, since Python enums are written either way; stored in the setting's spelling.
    match words.iter().find(|word| word.eq_ignore_ascii_case(&meant)) {
        Some(word) => Ok((*word).to_owned()),
        None => Err(Fault::NoSuchWord { word: meant, words }),
    }
}

/// A text truncated to fit into a sentence.
fn shown(text: &str) -> String {
    /// Maximum number of characters shown.
    const LONGEST: usize = 32;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("\"{}…\"", text.get(..end).unwrap_or(text)),
        None => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use shardscope_plan::{Field, SettingValue};

    #[track_caller]
    fn check(field: Field, text: &str, expected: Result<SettingValue, &str>) {
        assert_eq!(parse(field, text).map_err(|bad| bad.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        check(Field::NumLayers, "24", Ok(SettingValue::Int(24)));
        check(Field::TrainSamples, "9_765_625", Ok(SettingValue::Int(9_765_625)));
        check(Field::NumLayers, "32.0", Ok(SettingValue::Int(32)));
        check(Field::NumLayers, "-2", Err("num_layers is -2, and must be at least 1"));
        check(Field::NumLayers, "0", Err("num_layers is 0, and must be at least 1"));
        check(
            Field::NumLayers,
            "99999999999999999999999",
            Err("num_layers is \"99999999999999999999999\", above the limit of 4096"),
        );
        check(Field::NumLayers, "many", Err("num_layers takes a whole number, not \"many\""));
        check(Field::HiddenDropout, "0.1", Ok(SettingValue::Real(0.1)));
        check(Field::HiddenDropout, "nan", Err("hidden_dropout is \"nan\", and must lie between 0 and 1"));
    }

    #[test]
    fn words_are_known_ones() {
        check(Field::Normalization, "rmsnorm", Ok(SettingValue::Text("RMSNorm".into())));
        check(Field::Bf16, "True", Ok(SettingValue::Bool(true)));
        check(
            Field::RecomputeMethod,
            "all",
            Err("recompute_method takes one of uniform, block, every, all_but_every, not \"all\""),
        );
    }
}
