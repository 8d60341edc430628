//! One file per panel.

mod script;

pub(crate) use script::Script;
