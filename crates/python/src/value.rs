//! The value of an expression, as far as the names in it are known. Nothing is executed: the only calls whose results
//! are known are conversions, `dict`, `get` and `getattr`.

use super::arithmetic::whole;
use super::syntax::Node;

/// A value of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Flag(bool),
    /// As written.
    Number(String),
    /// The text between quotes, or a word of a command line.
    Text(String),
    /// A member of a module or enumeration: `torch.bfloat16`.
    Member(String),
    /// Values in order.
    List(Vec<Value>),
    /// Keys with their values; `None` for an unknown one.
    Dictionary(Vec<(String, Option<Value>)>),
}

impl Value {
    /// The value that a command-line word, or a default as written in a settings file, represents.
    pub fn from_setting(text: &str) -> Self {
        match text {
            "" | "None" => Self::None,
            _ if text.eq_ignore_ascii_case("true") => Self::Flag(true),
            _ if text.eq_ignore_ascii_case("false") => Self::Flag(false),
            _ if text.parse::<f64>().is_ok() => Self::Number(text.to_owned()),
            _ => Self::Text(text.to_owned()),
        }
    }

    /// As written in a settings file; `None` if it cannot be written there.
    pub fn setting(&self) -> Option<String> {
        Some(match self {
            Self::None => String::new(),
            Self::Flag(flag) => flag.to_string(),
            Self::Number(text) | Self::Text(text) | Self::Member(text) => text.clone(),
            Self::List(items) => {
                let words: Option<Vec<String>> = items.iter().map(Self::setting).collect();
                format!("[{}]", words?.join(", "))
            }
            Self::Dictionary(_) => return None,
        })
    }

    /// Its truth value in Python.
    fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Flag(flag) => *flag,
            Self::Number(text) => text.parse::<f64>().is_ok_and(|number| number != 0.0),
            Self::Text(text) => !text.is_empty(),
            Self::Member(_) => true,
            Self::List(items) => !items.is_empty(),
            Self::Dictionary(pairs) => !pairs.is_empty(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Equality as in Python, except that a command-line word equals the text or number it represents.
    fn equals(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(left), Some(right)) => left == right,
            _ => {
                self == other
                    || self.setting().zip(other.setting()).is_some_and(|(left, right)| left == right)
            }
        }
    }

    /// The value under a key of a dictionary; the outer `None` if there is no such key, or if this is not a
    /// dictionary.
    fn below(&self, key: &Self) -> Option<Option<Self>> {
        match self {
            Self::Dictionary(pairs) => {
                let key = key.setting()?;
                pairs.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| value.clone())
            }
            Self::List(items) => Some(items.get(key.setting()?.parse::<usize>().ok()?).cloned()),
            _ => None,
        }
    }
}

/// The values of a program's names.
pub trait Names {
    /// The value of a dotted name; `None` if unknown.
    fn value(&self, name: &str) -> Option<Value>;
    /// The result of one of the program's own functions; `None` if unknown.
    fn call(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// The value of an expression; `None` if unknown.
pub fn value(read: &Node, names: &dyn Names) -> Option<Value> {
    match read {
        Node::Text(text) => Some(Value::Text(text.clone())),
        Node::Whole(number) => Some(Value::Number(number.to_string())),
        Node::Number(text) => Some(Value::Number(text.clone())),
        Node::Joined(parts) => {
            let parts: Option<Vec<String>> = parts.iter().map(|part| value(part, names)?.setting()).collect();
            Some(Value::Text(parts?.concat()))
        }
        Node::Name(name) => match name.as_str() {
            "None" => Some(Value::None),
            "True" => Some(Value::Flag(true)),
            "False" => Some(Value::Flag(false)),
            name => names.value(name),
        },
        Node::Attribute(..) => {
            let name = read.dotted()?;
            if name.starts_with("torch.") { Some(Value::Member(name)) } else { names.value(&name) }
        }
        Node::List(items) => {
            items.iter().map(|item| value(item, names)).collect::<Option<_>>().map(Value::List)
        }
        // A set has no keys, and a dictionary with `**others` has keys that are not listed here.
        Node::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, item)| {
                let key = value(key.as_ref()?, names)?.setting()?;
                Some((key, value(item, names)))
            });
            pairs.collect::<Option<_>>().map(Value::Dictionary)
        }
        Node::Item(whole, key) => value(whole, names)?.below(&value(key, names)?)?,
        Node::Call(called, arguments) => match called.dotted() {
            Some(name) => call(&name, arguments, names),
            // `config.get("lora").get("r")`, `config["lora"].get("r", 8)`
            None => match called.as_ref() {
                Node::Attribute(object, method) if method == "get" => {
                    got(value(object, names)?, arguments, names)
                }
                _ => None,
            },
        },
        Node::Either(parts) => {
            let [condition, then, otherwise] = &**parts;
            match truth(condition, names) {
                Some(true) => value(then, names),
                Some(false) => value(otherwise, names),
                // Undecided, but the same either way.
                None => value(then, names).filter(|then| value(otherwise, names).as_ref() == Some(then)),
            }
        }
        Node::Binary("or", left, right) => value(if truth(left, names)? { left } else { right }, names),
        Node::Binary("and", left, right) => value(if truth(left, names)? { right } else { left }, names),
        Node::Binary(sign, left, right) => {
            let (left, right) = (value(left, names)?, value(right, names)?);
            match (&left, &right) {
                (Value::Number(left), Value::Number(right)) if ARITHMETIC.contains(sign) => {
                    whole(left, sign, right).map(Value::Number)
                }
                _ => compared(&left, sign, &right).map(Value::Flag),
            }
        }
        Node::Not(_) => truth(read, names).map(Value::Flag),
        Node::Opaque => None,
    }
}

/// Arithmetic operators; the others are comparisons.
const ARITHMETIC: [&str; 7] = ["+", "-", "*", "//", "/", "%", "**"];

/// Whether a condition holds; `None` if undecided.
pub fn truth(condition: &Node, names: &dyn Names) -> Option<bool> {
    match condition {
        Node::Not(inner) => truth(inner, names).map(|holds| !holds),
        Node::Binary(sign @ ("and" | "or"), left, right) => {
            // One side decides the outcome if it has this value.
            let decides = *sign == "or";
            match (truth(left, names), truth(right, names)) {
                (left, right) if left == Some(decides) || right == Some(decides) => Some(decides),
                (left, right) => left.zip(right).map(|_| !decides),
            }
        }
        other => value(other, names).map(|value| value.truth()),
    }
}

fn compared(left: &Value, sign: &str, right: &Value) -> Option<bool> {
    let ordered = |holds: fn(f64, f64) -> bool| Some(holds(left.number()?, right.number()?));
    let among = || match right {
        Value::List(items) => Some(items.iter().any(|item| item.equals(left))),
        Value::Dictionary(pairs) => left.setting().map(|key| pairs.iter().any(|(known, _)| *known == key)),
        Value::Text(text) => match left {
            Value::Text(part) => Some(text.contains(part.as_str())),
            _ => None,
        },
        _ => None,
    };
    match sign {
        "==" | "is" => Some(left.equals(right)),
        "!=" | "is not" => Some(!left.equals(right)),
        "<" => ordered(|left, right| left < right),
        "<=" => ordered(|left, right| left <= right),
        ">" => ordered(|left, right| left > right),
        ">=" => ordered(|left, right| left >= right),
        "in" => among(),
        "not in" => among().map(|holds| !holds),
        _ => None,
    }
}

/// Whether a launcher or a scheduler sets a variable of the environment, so that its default applies only to a run
/// without one.
fn is_of_the_launcher(variable: &str) -> bool {
    const NAMES: [&str; 10] = [
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "GROUP_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "NNODES",
        "MASTER_ADDR",
        "MASTER_PORT",
        "CUDA_VISIBLE_DEVICES",
    ];
    const STARTS: [&str; 6] = ["SLURM_", "OMPI_", "PMI_", "TORCHELASTIC_", "ACCELERATE_", "NPROC"];
    NAMES.contains(&variable) || STARTS.iter().any(|start| variable.starts_with(start))
}

/// The value of a call. An environment variable that has a default is treated as unset, as in a shell's
/// `${NAME:-default}`.
fn call(name: &str, arguments: &[(Option<String>, Node)], names: &dyn Names) -> Option<Value> {
    let plain = |index: usize| match arguments.get(index) {
        Some((None, argument)) => Some(argument),
        _ => None,
    };
    match name {
        "bool" if arguments.len() == 1 => truth(plain(0)?, names).map(Value::Flag),
        // Conversions that would truncate, round or reformat are not followed.
        "int" | "float" | "str" if arguments.len() == 1 => match (name, value(plain(0)?, names)?) {
            ("int", Value::Number(number)) if number.parse::<i64>().is_err() => None,
            ("int" | "float", given @ Value::Number(_)) => Some(given),
            ("int", Value::Text(text)) if text.parse::<i64>().is_ok() => Some(Value::Number(text)),
            ("float", Value::Text(text)) if text.parse::<f64>().is_ok_and(f64::is_finite) => {
                Some(Value::Number(text))
            }
            ("str", given @ (Value::Text(_) | Value::Number(_))) => Some(given),
            _ => None,
        },
        "dict" => {
            // `**others` has no name.
            let pairs = arguments.iter().map(|(key, item)| {
                let key = key.clone().filter(|key| !key.is_empty())?;
                Some((key, value(item, names)))
            });
            pairs.collect::<Option<_>>().map(Value::Dictionary)
        }
        "os.environ.get" | "os.getenv" | "environ.get" | "getenv" => match value(plain(0)?, names)? {
            Value::Text(variable) if !is_of_the_launcher(&variable) => value(plain(1)?, names),
            _ => None,
        },
        "getattr" => match (plain(0)?.dotted()?, plain(1)?) {
            (object, Node::Text(attribute)) => names.value(&format!("{object}.{attribute}")),
            _ => None,
        },
        _ => {
            let Some((object, method)) = name.rsplit_once('.') else { return names.call(name) };
            match (method, names.value(object)?) {
                ("lower", Value::Text(text)) => Some(Value::Text(text.to_lowercase())),
                ("strip", Value::Text(text)) if arguments.is_empty() => {
                    Some(Value::Text(text.trim().to_owned()))
                }
                ("copy", kept @ Value::Dictionary(_)) => Some(kept),
                ("get", kept) => got(kept, arguments, names),
                ("split", Value::Text(text)) => {
                    let Value::Text(sign) = value(plain(0)?, names)? else { return None };
                    let parts = text.split(sign.as_str()).map(|part| Value::Text(part.trim().to_owned()));
                    (!sign.is_empty()).then(|| Value::List(parts.collect()))
                }
                _ => None,
            }
        }
    }
}

/// A dictionary's value for a key, or else the second argument.
fn got(object: Value, arguments: &[(Option<String>, Node)], names: &dyn Names) -> Option<Value> {
    let (Value::Dictionary(_), [(None, key), rest @ ..]) = (&object, arguments) else { return None };
    match object.below(&value(key, names)?) {
        Some(found) => found,
        None => rest.first().map_or(Some(Value::None), |(_, default)| value(default, names)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::syntax::node;
    use super::{Names, Value, truth, value};

    struct Given;

    impl Names for Given {
        fn value(&self, name: &str) -> Option<Value> {
            Some(match name {
                "args.fp16" => Value::from_setting("false"),
                "args.bf16" => Value::from_setting("True"),
                "args.bits" => Value::from_setting("4"),
                "args.kind" => Value::from_setting("NF4"),
                "args.file" => Value::from_setting(""),
                "args.names" => Value::from_setting("q_proj, v_proj"),
                "lora" => value(&node("{'r': 16, 'alpha': unknown, 'on': True}"), self)?,
                _ => return None,
            })
        }
    }

    #[test]
    fn known_names_decide_what_an_expression_comes_to() {
        let cases = [
            (
                "(torch.float16 if args.fp16 else (torch.bfloat16 if args.bf16 else torch.float32))",
                Some("torch.bfloat16"),
            ),
            ("'a' if args.bits in [4, 8] and not args.fp16 else 'b'", Some("a")),
            ("'a' if other else 'a'", Some("a")),
            ("'a' if other else 'b'", None),
            ("args.file or 'x'", Some("x")),
            ("args.bits * 8 // 2", Some("16")),
            ("args.bits * other", None),
            ("int(args.bits)", Some("4")),
            ("int(0.5)", None),
            ("int(os.environ.get('BATCH', '8')) * 2", Some("16")),
            ("float(os.getenv('DROPOUT', '0.05'))", Some("0.05")),
            ("int(os.environ.get('LORA_RANK', '32'))", Some("32")),
            ("os.environ.get('USE', '1') == '1'", Some("true")),
            ("int('0.5')", None),
            ("float('nan')", None),
            ("os.environ.get('BATCH')", None),
            ("os.environ['BATCH']", None),
            ("int(os.environ.get('WORLD_SIZE', 1))", None),
            ("int(os.environ.get('SLURM_NTASKS', 1))", None),
            ("int(args.kind)", None),
            ("bool(args.bits)", Some("true")),
            ("lora['r']", Some("16")),
            ("lora.get('rank', 8)", Some("8")),
            ("lora.get('rank')", Some("")),
            ("lora['alpha']", None),
            ("lora.get('alpha', 1)", None),
            ("lora['rank']", None),
            ("getattr(args, 'bits', 1)", Some("4")),
            ("args.kind.lower() == 'nf4'", Some("true")),
            ("args.names.split(',')", Some("[q_proj, v_proj]")),
            ("f(1)", None),
        ];
        for (written, expected) in cases {
            let found = value(&node(written), &Given).and_then(|value| value.setting());
            assert_eq!(found.as_deref(), expected, "{written}");
        }
        let conditions = [
            ("args.bits == 4", Some(true)),
            ("args.bits >= 8 or args.file is not None", Some(false)),
            ("other and args.fp16", Some(false)),
            ("other or args.bf16", Some(true)),
            ("other", None),
            ("other or args.fp16", None),
            ("'r' in lora and 'x' not in lora", Some(true)),
            ("'F4' in args.kind", Some(true)),
            ("args.kind > 3", None),
        ];
        for (written, expected) in conditions {
            assert_eq!(truth(&node(written), &Given), expected, "{written}");
        }
    }
}
