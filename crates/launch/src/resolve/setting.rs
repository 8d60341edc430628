//! One setting with its value and where it comes from.

use crate::Origin;
use shardscope_plan::{Field, Kind};
use shardscope_source::Span;

/// A setting's value, typed.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// Not known or not applicable.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(u64),
    /// A real number.
    Real(f64),
    /// Text.
    Text(String),
    /// Several values.
    List(Vec<SettingValue>),
}

impl SettingValue {
    /// The value as an override takes it; empty when there is none.
    #[must_use]
    pub fn written(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Text(value) => value.clone(),
            Self::List(values) => values.iter().map(Self::written).collect::<Vec<_>>().join(" "),
        }
    }
}

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name ([`Field::name`]).
    pub name: &'static str,
    /// Its value.
    pub value: SettingValue,
    /// Where the value comes from.
    pub origin: Origin,
    /// The flag or key that stated it.
    pub flag: Option<String>,
    /// Where it was stated.
    pub span: Option<Span>,
    /// Which framework's default, or which rule.
    pub note: Option<String>,
}

/// Reads a value as its setting wants it.
///
/// # Errors
/// A sentence that says what the setting takes.
pub(super) fn parse(field: Field, text: &str) -> Result<SettingValue, String> {
    let text = text.trim();
    match field.kind() {
        Kind::Count(least, most) => count(field, text, least, most).map(SettingValue::Int),
        Kind::Real(least, most) => real(field, text, least, most).map(SettingValue::Real),
        Kind::Flag => truth(field, text).map(SettingValue::Bool),
        Kind::Word(words) => word(field, text, words).map(SettingValue::Text),
        Kind::Text => Ok(SettingValue::Text(text.to_owned())),
        Kind::Counts | Kind::Words => {
            let mut values = Vec::new();
            for one in text.split([' ', ',', '\t', '[', ']', '(', ')', '\'', '"']) {
                if !one.is_empty() {
                    values.push(match field.kind() {
                        Kind::Counts => SettingValue::Int(count(field, one, 0, u64::MAX >> 16)?),
                        _ => SettingValue::Text(one.to_owned()),
                    });
                }
            }
            Ok(SettingValue::List(values))
        }
    }
}

/// Whether a text says that there is no value, in any of the formats read. `none` is a value where it is one of the
/// setting's words.
pub(super) fn says_nothing(field: Field, text: &str) -> bool {
    let text = text.trim();
    let is_none = text.eq_ignore_ascii_case("none");
    let a_word = match field.kind() {
        Kind::Word(words) => words.contains(&"none"),
        _ => field == Field::MoeRouterLoadBalancingType,
    };
    is_none && !a_word || ["", "null", "~"].iter().any(|nothing| text.eq_ignore_ascii_case(nothing))
}

fn count(field: Field, text: &str, least: u64, most: u64) -> Result<u64, String> {
    let name = field.name();
    let digits: String = text.strip_prefix('+').unwrap_or(text).chars().filter(|c| *c != '_').collect();
    // A whole number with an empty fraction (4096.0), as YAML and JSON may bring it.
    let whole = match digits.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => digits.as_str(),
    };
    if let Some(negative) = whole.strip_prefix('-')
        && !negative.is_empty()
        && negative.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(format!("{name} is {text}, and must be at least {least}"));
    }
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{name} takes a whole number, not {}", shown(text)));
    }
    match whole.parse::<u64>() {
        Ok(value) if value < least => Err(format!("{name} is {value}, and must be at least {least}")),
        Ok(value) if value <= most => Ok(value),
        _ => Err(format!("{name} is {}, and the greatest that is taken is {most}", shown(whole))),
    }
}

fn real(field: Field, text: &str, least: f64, most: f64) -> Result<f64, String> {
    let name = field.name();
    match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err(format!("{name} is {}, and must lie between {least} and {most}", shown(text))),
        Err(_) => Err(format!("{name} takes a number, not {}", shown(text))),
    }
}

fn truth(field: Field, text: &str) -> Result<bool, String> {
    const TRUTHS: [&str; 8] = ["true", "1", "yes", "on", "false", "0", "no", "off"];
    match TRUTHS.iter().position(|word| word.eq_ignore_ascii_case(text)) {
        Some(at) => Ok(at < 4),
        None => Err(format!("{} takes true or false, not {}", field.name(), shown(text))),
    }
}

fn word(field: Field, text: &str, words: &[&str]) -> Result<String, String> {
    let meant = super::synonyms::word(field, text);
    let text = meant.as_str();
    match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
        Some(word) => Ok((*word).to_owned()),
        None => Err(format!("{} takes one of {}, not {}", field.name(), words.join(", "), shown(text))),
    }
}

/// A text cut to what a sentence can hold.
fn shown(text: &str) -> String {
    /// Characters shown.
    const LONGEST: usize = 32;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("\"{}…\"", text.get(..end).unwrap_or(text)),
        None => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::{SettingValue, parse};
    use shardscope_plan::Field;

    #[track_caller]
    fn check(field: Field, text: &str, expected: Result<SettingValue, &str>) {
        assert_eq!(parse(field, text), expected.map_err(str::to_owned));
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
            Err("num_layers is \"99999999999999999999999\", and the greatest that is taken is 4096"),
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
            Err("recompute_method takes one of uniform, block, not \"all\""),
        );
    }
}
