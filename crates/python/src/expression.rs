//! Expressions as used in configurations: literals, dotted names, lists, calls with keywords, and integer arithmetic.
//! Anything else that [`syntax`](super::syntax) reads is [`Expression::Unknown`], and a value that a recipe needs
//! becomes a question.

use super::arithmetic::whole;
use super::syntax::{Cursor, Node, node};

/// Most parameters of one function.
const LONGEST: usize = 512;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A quoted text.
    Text(String),
    /// A number as written, without underscores.
    Number(String),
    /// A dotted name: `True`, `None`, `torch.bfloat16`, `cfg.model`.
    Name(String),
    /// Values in order.
    List(Vec<Expression>),
    /// A call by its dotted name; methods called on its result are dropped.
    Call(String, Vec<Argument>),
    /// Arithmetic with names, which is evaluated if they have integer values; `or` takes the first that exists.
    Computed(Box<Expression>, &'static str, Box<Expression>),
    /// Something that is not supported.
    Unknown,
}

/// An argument with its keyword.
pub type Argument = (Option<String>, Expression);

/// Parses a text as an expression.
pub fn expression(text: &str) -> Expression {
    Expression::from(node(text))
}

/// The parameters in the parentheses that a text begins with, each with its default.
pub fn parameters(text: &str) -> Vec<(String, Option<Node>)> {
    let mut cursor = Cursor::new(text);
    cursor.at = 1;
    let mut out = Vec::new();
    while out.len() < LONGEST {
        cursor.blanks();
        match cursor.sign() {
            None | Some(b')') => break,
            Some(sign) if sign.is_ascii_alphabetic() || sign == b'_' => {
                let name = cursor.word();
                skip_type(&mut cursor);
                let has_default = cursor.sign() == Some(b'=');
                cursor.at += usize::from(has_default);
                out.push((name, has_default.then(|| cursor.value())));
            }
            _ => cursor.at += 1,
        }
    }
    out
}

/// `: Type` of a parameter.
fn skip_type(cursor: &mut Cursor<'_>) {
    let mut depth = 0_u32;
    while let Some(sign) = cursor.sign() {
        match sign {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            b'=' | b',' | b')' if depth == 0 => return,
            _ => {}
        }
        cursor.at += 1;
    }
}

impl From<Node> for Expression {
    fn from(read: Node) -> Self {
        match read {
            Node::Text(text) => Self::Text(text),
            Node::Whole(number) => Self::Number(number.to_string()),
            Node::Number(text) => Self::Number(text),
            Node::List(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Node::Call(called, arguments) => call(*called, arguments),
            Node::Binary(sign, left, right) => computed(Self::from(*left), sign, Self::from(*right)),
            named @ (Node::Name(_) | Node::Attribute(..)) => {
                named.dotted().map_or_else(|| attribute(named), Self::Name)
            }
            Node::Joined(parts) => joined(&parts),
            Node::Map(_) | Node::Item(..) | Node::Either(_) | Node::Not(_) | Node::Opaque => Self::Unknown,
        }
    }
}

/// Adjacent string literals are concatenated.
fn joined(parts: &[Node]) -> Expression {
    let texts = parts.iter().map(|part| if let Node::Text(text) = part { Some(text.as_str()) } else { None });
    let whole: Option<String> = texts.collect();
    whole.map_or(Expression::Unknown, Expression::Text)
}

/// A call; for a method on another call's result, that other call.
fn call(called: Node, arguments: Vec<(Option<String>, Node)>) -> Expression {
    match called.dotted() {
        Some(name) => {
            let arguments = arguments.into_iter().map(|(keyword, value)| (keyword, Expression::from(value)));
            Expression::Call(name, arguments.collect())
        }
        None => attribute(called),
    }
}

/// The expression whose attribute this is, if it is an attribute of a call's result.
fn attribute(read: Node) -> Expression {
    match read {
        Node::Attribute(of, _) => match *of {
            Node::Call(called, arguments) => call(*called, arguments),
            of => attribute(of),
        },
        _ => Expression::Unknown,
    }
}

/// Arithmetic on whole numbers, or on names that may have integer values.
fn computed(left: Expression, sign: &'static str, right: Expression) -> Expression {
    let is_known = matches!(sign, "or" | "+" | "-" | "*" | "//" | "/" | "%" | "**");
    let open = |side: &Expression| matches!(side, Expression::Name(_) | Expression::Computed(..));
    let known = |side: &Expression| open(side) || matches!(side, Expression::Number(_));
    if is_known && known(&left) && known(&right) && (open(&left) || open(&right)) {
        return Expression::Computed(Box::new(left), sign, Box::new(right));
    }
    match (left, right) {
        // A minus before a number that is not an integer: `-1e-4`.
        (Expression::Number(zero), Expression::Number(text)) if sign == "-" && zero == "0" => {
            Expression::Number(format!("-{text}"))
        }
        (Expression::Number(left), Expression::Number(right)) => {
            whole(&left, sign, &right).map_or(Expression::Unknown, Expression::Number)
        }
        _ => Expression::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{Expression, expression};
    use Expression::{Call, List, Name, Number, Text, Unknown};

    #[test]
    fn literals_names_and_calls_are_read_and_the_rest_is_unknown() {
        let text = |text: &str| Text(text.to_owned());
        let number = |text: &str| Number(text.to_owned());
        let cases = [
            ("\"bf16\"", text("bf16")),
            ("'a' \"b\"", text("ab")),
            ("8 * 2_048", number("16384")),
            ("1 + 2 * 3 ** 2", number("19")),
            ("2**21 // 2", number("1048576")),
            ("3e-4", number("3e-4")),
            ("-1", number("-1")),
            ("torch.bfloat16", Name("torch.bfloat16".to_owned())),
            ("[1, 'x',]", List(vec![number("1"), text("x")])),
            ("(2)", number("2")),
            (
                "AutoBridge.from_hf_pretrained(\"Qwen/Qwen2-0.5B\").to_megatron_provider(load_weights=False)",
                Call("AutoBridge.from_hf_pretrained".to_owned(), vec![(None, text("Qwen/Qwen2-0.5B"))]),
            ),
            (
                "FullAC.Config(x = Y(), # why\n z=None)",
                Call(
                    "FullAC.Config".to_owned(),
                    vec![
                        (Some("x".to_owned()), Call("Y".to_owned(), Vec::new())),
                        (Some("z".to_owned()), Name("None".to_owned())),
                    ],
                ),
            ),
            ("a if b else c", Unknown),
            ("f\"{x}\"", Unknown),
            ("{'a': 1}", Unknown),
            ("x[0]", Unknown),
            (
                "f(a if b else c, k=2)",
                Call("f".to_owned(), vec![(None, Unknown), (Some("k".to_owned()), number("2"))]),
            ),
            ("(((((", List(Vec::new())),
            ("", Unknown),
        ];
        for (written, expected) in cases {
            assert_eq!(expression(written), expected, "{written}");
        }
    }
}
