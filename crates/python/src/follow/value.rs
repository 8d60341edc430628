//! The values of names in a launcher. A text may contain parts that only the program knows, between [`OPEN`] and
//! [`CLOSE`].

/// Precedes the name of an unknown part.
pub const OPEN: char = '\u{1}';
/// Follows it.
pub const CLOSE: char = '\u{2}';

/// The value of a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    None,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Another number, as written.
    Number(String),
    /// A text.
    Text(String),
    /// Values in order; those of a set too.
    List(Vec<Value>),
    /// Values by their keys.
    Map(Vec<(Value, Value)>),
    /// An object of a class, by its number.
    Object(usize),
    /// Unknown, with its name. An environment variable starts with a dollar sign.
    Open(String),
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// As `str()` and f-strings write it.
    #[must_use]
    pub fn written(&self) -> String {
        match self {
            Self::None => "None".to_owned(),
            Self::Flag(true) => "True".to_owned(),
            Self::Flag(false) => "False".to_owned(),
            Self::Whole(number) => number.to_string(),
            Self::Text(text) | Self::Number(text) => text.clone(),
            Self::Open(name) => format!("{OPEN}{name}{CLOSE}"),
            Self::List(_) | Self::Map(_) | Self::Object(_) => {
                Self::Open("a value that is written out".to_owned()).written()
            }
        }
    }

    /// What makes it unknown, if anything does.
    pub(crate) fn unknown(&self) -> Option<&str> {
        match self {
            Self::Open(name) => Some(name),
            Self::List(items) => items.iter().find_map(Self::unknown),
            Self::Map(items) => items.iter().find_map(|(key, value)| key.unknown().or(value.unknown())),
            Self::Text(text) => text.split_once(OPEN).map(|(_, rest)| rest.split(CLOSE).next().unwrap_or("")),
            _ => None,
        }
    }

    /// Whether it is truthy in Python; as the error, the name of what would decide it.
    pub(crate) fn holds(&self) -> Result<bool, String> {
        match self {
            Self::None => Ok(false),
            Self::Flag(flag) => Ok(*flag),
            Self::Whole(number) => Ok(*number != 0),
            Self::Number(number) => Ok(number.parse() != Ok(0.0)),
            Self::Text(text) if !text.is_empty() && !text.starts_with(OPEN) => Ok(true),
            Self::Text(text) if text.is_empty() => Ok(false),
            Self::List(items) => Ok(!items.is_empty()),
            Self::Map(items) => Ok(!items.is_empty()),
            Self::Object(_) => Ok(true),
            Self::Text(_) | Self::Open(_) => Err(self.unknown().unwrap_or("").to_owned()),
        }
    }

    /// Number of values it contains.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => 1 + text.len() / 64,
            Self::List(items) => items.iter().map(Self::weight).sum::<usize>() + 1,
            Self::Map(items) => {
                items.iter().map(|(key, value)| key.weight() + value.weight()).sum::<usize>() + 1
            }
            _ => 1,
        }
    }
}

/// The result of a Python operator on two values. Open if it is not evaluated.
pub(crate) fn binary(left: &Value, sign: &str, right: &Value) -> Value {
    let open = |value: &Value| value.unknown().map(str::to_owned);
    match (left, sign, right) {
        (Value::Text(left), "+", Value::Text(right)) => Value::Text(format!("{left}{right}")),
        // An open value joined with a text is treated as a text.
        (Value::Text(_), "+", Value::Open(_)) | (Value::Open(_), "+", Value::Text(_)) => {
            Value::Text(left.written() + &right.written())
        }
        (Value::List(left), "+", Value::List(right)) => Value::List([left.as_slice(), right].concat()),
        (Value::Map(left), "|", Value::Map(right)) => {
            let mut all = left.clone();
            for (key, value) in right {
                put(&mut all, key.clone(), value.clone());
            }
            Value::Map(all)
        }
        (Value::Whole(left), _, Value::Whole(right)) => {
            let (left, right) = (*left, *right);
            let whole = match sign {
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                "*" => left.checked_mul(right),
                "//" => left.checked_div_euclid(right).filter(|_| right > 0),
                "%" => left.checked_rem_euclid(right).filter(|_| right > 0),
                "**" => u32::try_from(right).ok().and_then(|power| left.checked_pow(power)),
                _ => None,
            };
            let flag = match sign {
                "==" => Some(left == right),
                "!=" => Some(left != right),
                ">=" => Some(left >= right),
                "<=" => Some(left <= right),
                ">" => Some(left > right),
                "<" => Some(left < right),
                _ => None,
            };
            let both = whole.map(Value::Whole).or(flag.map(Value::Flag));
            both.unwrap_or_else(|| Value::Open("a calculation".to_owned()))
        }
        (_, "==" | "is", _) | (_, "!=" | "is not", _) => match open(left).or_else(|| open(right)) {
            Some(name) => Value::Open(name),
            None => Value::Flag((left == right) == (sign == "==" || sign == "is")),
        },
        (_, "in" | "not in", _) if open(left).is_none() => {
            let found = match (left, right) {
                (_, Value::List(items)) if items.iter().all(|item| item.unknown().is_none()) => {
                    items.contains(left)
                }
                (_, Value::Map(items)) => items.iter().any(|(key, _)| key == left),
                (Value::Text(part), Value::Text(text)) if !text.contains(OPEN) => {
                    text.contains(part.as_str())
                }
                _ => return Value::Open(open(right).unwrap_or_else(|| "a membership".to_owned())),
            };
            Value::Flag(found == (sign == "in"))
        }
        _ => Value::Open(open(left).or_else(|| open(right)).unwrap_or_else(|| "a calculation".to_owned())),
    }
}

/// Sets the value of a key.
pub(crate) fn put(items: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match items.iter_mut().find(|(known, _)| *known == key) {
        Some((_, held)) => *held = value,
        None => items.push((key, value)),
    }
}

/// The result of a string method; `None` if unknown.
pub(crate) fn method(text: &str, name: &str, given: &[Value]) -> Option<Value> {
    if text.contains(OPEN) {
        return None;
    }
    Some(match (name, given) {
        ("strip", []) => Value::text(text.trim()),
        ("lower", []) => Value::Text(text.to_lowercase()),
        ("upper", []) => Value::Text(text.to_uppercase()),
        ("startswith", [Value::Text(start)]) => Value::Flag(text.starts_with(start.as_str())),
        ("endswith", [Value::Text(end)]) => Value::Flag(text.ends_with(end.as_str())),
        ("replace", [Value::Text(old), Value::Text(new)]) if !old.is_empty() => {
            Value::Text(text.replace(old.as_str(), new))
        }
        ("join", [Value::List(items)]) => {
            let written: Vec<String> = items.iter().map(Value::written).collect();
            Value::Text(written.join(text))
        }
        ("split", [Value::Text(sign)]) if !sign.is_empty() => {
            Value::List(text.split(sign.as_str()).map(Value::text).collect())
        }
        _ => return None,
    })
}
