//! A flag of one of Megatron-LM's forks: its arguments, and what it states or changes.

use super::flags::Arity;
use crate::Effect;
use shardscope_plan::Field;

/// A fork's flag.
#[derive(Debug)]
pub(super) struct Fork {
    /// Without dashes.
    pub(super) name: &'static str,
    /// Its arguments.
    pub(super) arity: Arity,
    /// The settings that it states, each with a fixed value or the flag's argument.
    pub(super) states: &'static [(Field, Option<&'static str>)],
    /// An effect that is not modelled, and what it would change.
    pub(super) lacking: Option<(Effect, &'static str)>,
}

pub(super) const fn takes(name: &'static str, field: &'static [(Field, Option<&'static str>)]) -> Fork {
    Fork { name, arity: Arity::One, states: field, lacking: None }
}

pub(super) const fn several(name: &'static str, field: &'static [(Field, Option<&'static str>)]) -> Fork {
    Fork { name, arity: Arity::Several, states: field, lacking: None }
}

pub(super) const fn switch(name: &'static str, states: &'static [(Field, Option<&'static str>)]) -> Fork {
    Fork { name, arity: Arity::On, states, lacking: None }
}

pub(super) const fn lacking(name: &'static str, arity: Arity, effect: Effect, what: &'static str) -> Fork {
    Fork { name, arity, states: &[], lacking: Some((effect, what)) }
}

/// The flag of that name among these.
pub(super) fn named(forks: &'static [Fork], name: &str) -> Option<&'static Fork> {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let same = |known: &str| {
        known.len() == name.len() && known.bytes().zip(name.bytes()).all(|(a, b)| dashed(a) == dashed(b))
    };
    forks.iter().find(|fork| same(fork.name))
}
