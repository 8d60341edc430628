//! The functions of a Python program and their statements, as text.

use super::arithmetic::whole;
use super::expression::{Expression, expression, parameters};
use super::statements::{Statement, statements};
use std::rc::Rc;

/// A function at the top of a program.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// The text after `->`.
    pub returns: &'a str,
    /// Parameters with their defaults.
    pub parameters: Vec<(String, Option<Expression>)>,
    /// Its statements in order.
    pub body: Vec<Statement<'a>>,
    /// Values of the top-level names of its program, shared by all of its functions.
    pub constants: Rc<Constants<'a>>,
}

/// Top-level names of a program whose value is a word or a number, each assigned once.
pub type Constants<'a> = Vec<(&'a str, Expression)>;

/// Most functions read per program.
const MOST: usize = 4096;
/// Most constants read per program; recipes have a dozen.
const MOST_CONSTANTS: usize = 64;

/// The functions of a program.
pub fn functions(text: &str) -> Vec<Function<'_>> {
    let mut out: Vec<Function<'_>> = Vec::new();
    let mut inside = false;
    let statements = statements(text);
    let constants = Rc::new(constants(&statements));
    for statement in statements {
        if statement.indent > 0 {
            if let Some(last) = out.last_mut().filter(|_| inside) {
                last.body.push(statement);
            }
            continue;
        }
        let Some(rest) = statement.text.strip_prefix("def ").filter(|_| out.len() < MOST) else {
            inside = false;
            continue;
        };
        let Some((name, behind)) = rest.split_once('(').map(|(name, _)| (name, rest.get(name.len()..)))
        else {
            inside = false;
            continue;
        };
        let returns =
            statement.text.rsplit_once("->").map_or("", |(_, behind)| behind.trim_end_matches(':').trim());
        let parameters = parameters(behind.unwrap_or("")).into_iter();
        let parameters = parameters.map(|(name, default)| (name, default.map(Expression::from))).collect();
        let constants = Rc::clone(&constants);
        out.push(Function { name: name.trim(), returns, parameters, body: Vec::new(), constants });
        inside = true;
    }
    out
}

/// Literals assigned at the top of a program. A name that is assigned twice has no value.
fn constants<'a>(statements: &[Statement<'a>]) -> Constants<'a> {
    let mut found: Vec<(&str, Option<Expression>)> = Vec::new();
    for statement in statements.iter().filter(|statement| statement.indent == 0) {
        let Some((target, value)) = statement.text.split_once('=') else { continue };
        // `NAME: str = "value"`
        let name = target.split_once(':').map_or(target, |(name, _)| name).trim();
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plain || found.len() == MOST_CONSTANTS {
            continue;
        }
        if let Some((_, again)) = found.iter_mut().find(|(known, _)| *known == name) {
            *again = None;
            continue;
        }
        let literal = literal(expression(value.trim()), &found);
        found.push((name, literal));
    }
    found.into_iter().filter_map(|(name, literal)| Some((name, literal?))).collect()
}

/// A literal, or the result of arithmetic on integers of the program.
fn literal(value: Expression, found: &[(&str, Option<Expression>)]) -> Option<Expression> {
    match value {
        Expression::Text(_) | Expression::Number(_) => Some(value),
        Expression::Name(name) if matches!(name.as_str(), "True" | "False") => {
            Some(Expression::Text(name.to_ascii_lowercase()))
        }
        Expression::Name(name) => {
            let named = found.iter().find(|(known, _)| *known == name);
            named
                .and_then(|(_, literal)| literal.clone())
                .filter(|value| matches!(value, Expression::Number(_)))
        }
        Expression::Computed(left, sign, right) => match (literal(*left, found)?, literal(*right, found)?) {
            (Expression::Number(left), Expression::Number(right)) => {
                whole(&left, sign, &right).map(Expression::Number)
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn functions_with_their_parameters_and_statements() {
        let text = "import x\n\ndef a(p: str = \"lora\", q=1) -> Config:\n    \"\"\"Doc\n    string.\"\"\"\n    cfg = b(\n        1,  # a )\n    )\n    if p:\n        cfg.x = 2\n    return cfg\n\nX = 1\n\ndef _b():\n    pass\n";
        let found = functions(text);
        let names: Vec<(&str, &str, usize, usize)> =
            found.iter().map(|one| (one.name, one.returns, one.parameters.len(), one.body.len())).collect();
        assert_eq!(names, [("a", "Config", 2, 5), ("_b", "", 0, 1)]);
        let indents: Vec<usize> = found[0].body.iter().map(|statement| statement.indent).collect();
        assert_eq!(indents, [4, 4, 4, 8, 4]);
    }

    #[test]
    fn constants_are_literals_assigned_once() {
        let text = "A = \"org/model\"\nB: int = 8\nC = 1\nC = 2\nD = f(1)\n\ndef a():\n    E = 3\n";
        let found = functions(text);
        let names: Vec<&str> = found[0].constants.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["A", "B"]);
    }
}
