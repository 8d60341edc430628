//! Values of keys and expressions.

use shardscope_config_tree::{Node, Value as Tree};

/// Value of a key or an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `null`, or a key that is not there.
    Nothing,
    Truth(bool),
    /// Whole numbers; wide enough that a product of three sizes of 64 bits is noticed, not wrapped.
    Whole(i128),
    Real(f64),
    Text(String),
    List(Vec<Value>),
}

impl Value {
    /// The value of a node; a map holds nothing that an expression could use.
    pub(crate) fn from_node(node: &Node) -> Self {
        match &node.value {
            Tree::Map(_) => Self::Nothing,
            Tree::List(items) => Self::List(items.iter().map(Self::from_node).collect()),
            // Quoted numbers stay text, as Python's json has them.
            Tree::Scalar(scalar) if scalar.quoted => Self::Text(scalar.text.clone()),
            Tree::Scalar(scalar) => Self::plain(&scalar.text),
        }
    }

    /// The value of an unquoted word.
    pub(crate) fn plain(text: &str) -> Self {
        match text {
            "" | "null" | "None" | "~" => Self::Nothing,
            "true" | "True" => Self::Truth(true),
            "false" | "False" => Self::Truth(false),
            _ => match (text.parse::<i64>(), text.parse::<f64>()) {
                // Numbers beyond i64 are read as real, and refused where a size is asked for.
                (Ok(whole), _) => Self::Whole(i128::from(whole)),
                // "nan" and "inf" parse as numbers of Rust; in a configuration they are words.
                (_, Ok(real)) if real.is_finite() => Self::Real(real),
                _ => Self::Text(text.to_owned()),
            },
        }
    }

    /// Whether it counts as true, by Python's rules: everything but nothing, no, zero and the empty ones.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Truth(truth) => *truth,
            Self::Whole(whole) => *whole != 0,
            Self::Real(real) => *real != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(values) => !values.is_empty(),
        }
    }

    /// As a number, where it is one; yes is 1 and no is 0.
    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Self::Truth(truth) => Some(Number::Whole(i128::from(*truth))),
            Self::Whole(whole) => Some(Number::Whole(*whole)),
            Self::Real(real) => Some(Number::Real(*real)),
            Self::Nothing | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// Whether two are the same; numbers of either kind compare.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self.number(), other.number()) {
            (Some(Number::Whole(left)), Some(Number::Whole(right))) => left == right,
            // A size may be written as 4096.0.
            (Some(left), Some(right)) => left.real() == right.real(),
            _ => self == other,
        }
    }
}

/// A number of either kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53 where a fraction meets them")]
    pub(crate) fn real(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }
}
