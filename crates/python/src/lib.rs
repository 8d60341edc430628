//! Python as far as programs state settings in it: statements, expressions, and their values where the names in them
//! are known.
//!
//! Nothing is executed. [`syntax`] reads any expression, and [`value()`](value::value) evaluates it with names that
//! the caller knows; [`follow`] goes through a program that starts a training. [`expression`] reads the expressions
//! of configurations, and [`evaluate()`](evaluate::evaluate) runs functions that return one. Anything unknown stays a
//! hole or `None`; depth, length and work are bounded by named limits.

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
mod targets;
pub mod tree;
pub mod value;
