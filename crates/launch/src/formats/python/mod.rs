//! Python as far as programs state settings in it: statements, expressions, and what these come to where the names in them are
//! known. Nothing is executed.

pub(in crate::formats) mod arithmetic;
pub(in crate::formats) mod expression;
pub(in crate::formats) mod statements;
pub(in crate::formats) mod syntax;
pub(in crate::formats) mod value;
