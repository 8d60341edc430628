//! Python as far as programs state settings in it: statements, expressions, and what these come to where the names in them are known.
//!
//! Nothing is executed. [`syntax`] reads any expression, and [`value()`](value::value) works it out from names that the caller knows;
//! [`follow`] goes through a program that starts a training.
//! [`expression`] reads those of configurations, and [`evaluate()`](evaluate::evaluate) runs functions that return one. What is not known
//! stays a hole or nothing; depth, length and work are bounded by named limits.

pub mod arithmetic;
mod branches;
pub mod evaluate;
pub mod expression;
pub mod follow;
pub mod program;
mod scope;
pub mod statements;
mod strings;
pub mod syntax;
pub mod tree;
pub mod value;
