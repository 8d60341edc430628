//! The results of arithmetic operators, and the reasons why an expression has no value.

use super::super::value::HoleId;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Why an expression has no value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoNumber {
    /// Its value depends on this unknown.
    Hole(HoleId),
    /// It is not an expression, or has no value.
    Wrong(ArithmeticError),
}

/// What is wrong with an arithmetic expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithmeticError {
    /// Variables refer to each other without end.
    EndlessVariables,
    /// The budget of steps is spent.
    TooMuchWork,
    /// This is no integer expression.
    NoExpression,
    /// It is nested too deeply.
    TooDeep,
    /// A ? lacks its :.
    LonelyQuestionMark,
    /// A parenthesis is not closed.
    OpenParenthesis,
    /// Bash has no decimal fractions.
    Fraction,
    /// A number has no such base.
    NoSuchBase,
    /// This is no integer.
    NoInteger,
    /// An index is not closed.
    OpenIndex,
    /// Division by zero.
    DivisionByZero,
    /// A negative power is no integer.
    NegativePower,
}

impl Display for ArithmeticError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::EndlessVariables => "variables refer to each other in a cycle",
            Self::TooMuchWork => "too much work",
            Self::NoExpression => "this is not an integer expression",
            Self::TooDeep => "it is nested too deeply",
            Self::LonelyQuestionMark => "a ? without its :",
            Self::OpenParenthesis => "a parenthesis is not closed",
            Self::Fraction => "bash has no decimal fractions",
            Self::NoSuchBase => "a number has no such base",
            Self::NoInteger => "this is no integer",
            Self::OpenIndex => "an index is not closed",
            Self::DivisionByZero => "division by zero",
            Self::NegativePower => "a negative exponent gives no integer",
        })
    }
}

impl Error for ArithmeticError {}

/// `left sign right`, wrapping as bash does.
///
/// # Errors
/// If there is no such number.
pub(super) fn apply(sign: &str, left: i64, right: i64) -> Result<i64, ArithmeticError> {
    Ok(match sign {
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" | "%" if right == 0 => return Err(ArithmeticError::DivisionByZero),
        // The smallest number divided by -1 is itself, as in bash; a plain division would panic.
        "/" => left.wrapping_div(right),
        "%" => left.wrapping_rem(right),
        "**" => match u32::try_from(right) {
            Ok(power) => left.wrapping_pow(power),
            Err(_) => return Err(ArithmeticError::NegativePower),
        },
        // Bash leaves shifts past 63 to the processor, which takes the low six bits.
        "<<" => left.wrapping_shl(u32::try_from(right & 63).unwrap_or(0)),
        ">>" => left.wrapping_shr(u32::try_from(right & 63).unwrap_or(0)),
        "&" => left & right,
        "|" => left | right,
        "^" => left ^ right,
        "&&" => i64::from(left != 0 && right != 0),
        "||" => i64::from(left != 0 || right != 0),
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<=" => i64::from(left <= right),
        _ => i64::from(left >= right),
    })
}
