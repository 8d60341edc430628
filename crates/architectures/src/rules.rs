//! The rules of all model types, `rules.txt`, and what a configuration of each may leave out, `defaults.txt`.

use std::collections::HashMap;

use shardscope_source::LaterText;

use crate::expression::Expression;
use crate::value::Value;

// The page's first program has no tables: they come behind it (feature `tables-later`).
static RULES: LaterText = LaterText::new(
    "rules.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("rules.txt")) },
);
static DEFAULTS: LaterText = LaterText::new(
    "defaults.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("defaults.txt")) },
);
/// How the block of a model type begins.
const TYPE: &str = "type ";
/// How that of a vision tower does.
const TOWER: &str = "tower ";
/// How that of an encoder-decoder does.
const PAIR: &str = "pair ";
/// Longest line of ancestors of a type.
const GENERATIONS: u32 = 8;

/// The tables of this crate: until a program with the feature `tables-later` is given them, no model type is known.
#[must_use]
pub fn tables() -> [&'static LaterText; 2] {
    [&RULES, &DEFAULTS]
}

/// The definitions of one model type, those of its ancestors included, by name.
pub(crate) type Definitions = HashMap<&'static str, Expression>;

/// The definitions of a model type; none where the rules have no such type.
pub(crate) fn definitions(model_type: &str) -> Option<Definitions> {
    inherited(TYPE, model_type)
}

/// The definitions of the vision tower of a composite model type, its projector counted in; none where the rules have
/// none of it.
pub(crate) fn tower_definitions(model_type: &str) -> Option<Definitions> {
    inherited(TOWER, model_type)
}

/// The definitions of an encoder-decoder; none where the rules have no such type.
pub(crate) fn pair_definitions(model_type: &str) -> Option<Definitions> {
    inherited(PAIR, model_type)
}

fn inherited(head: &str, name: &str) -> Option<Definitions> {
    let mut all = Definitions::new();
    let mut wanted = Some(name);
    for _ in 0..GENERATIONS {
        let Some(name) = wanted else { break };
        let (parent, lines) = block(head, name)?;
        for line in lines {
            // The nearest definition wins: a type states what sets it apart from its parent.
            if let Some((name, expression)) = line.split_once(" = ")
                && !all.contains_key(name)
            {
                // One definition that cannot be read makes the whole type unknown: half of its rules would count
                // wrongly.
                all.insert(name, Expression::read(expression)?);
            }
        }
        wanted = parent;
    }
    // Ancestors that were not reached: half of the rules would count wrongly.
    wanted.is_none().then_some(all)
}

/// The parent and the lines of one's own block: `type NAME NAME ... [: PARENT]`, or `tower`, and what follows it.
fn block(
    head: &str,
    name: &str,
) -> Option<(Option<&'static str>, impl Iterator<Item = &'static str> + use<>)> {
    let mut lines = meaningful(RULES.text());
    // By reference: the lines of the block are what comes next.
    let parent = lines.by_ref().find_map(|line| {
        let (names, parent) = headed(head, line)?;
        // Several types share a block where only their names differ.
        names.split(' ').any(|known| known == name).then_some(parent)
    })?;
    let is_head = |line: &str| [TYPE, TOWER, PAIR].iter().any(|head| line.starts_with(head));
    Some((parent, lines.take_while(move |line| !is_head(line))))
}

fn headed(head: &str, line: &'static str) -> Option<(&'static str, Option<&'static str>)> {
    let rest = line.strip_prefix(head)?;
    Some(rest.split_once(" : ").map_or((rest, None), |(names, parent)| (names, Some(parent))))
}

fn meaningful(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// All model types that have rules.
pub fn model_types() -> impl Iterator<Item = &'static str> {
    meaningful(RULES.text()).filter_map(|line| headed(TYPE, line)).flat_map(|(names, _)| names.split(' '))
}

/// What a type's configuration takes for keys that are not written, and which keys are one.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    values: Vec<(&'static str, &'static str)>,
    aliases: Vec<(&'static str, &'static str)>,
    text_type: Option<&'static str>,
}

impl Defaults {
    /// Those of a model type; none where the library has none of that name.
    pub(crate) fn for_model_type(model_type: &str) -> Self {
        let mut all = Self::default();
        let line = meaningful(DEFAULTS.text()).find_map(|line| {
            let (name, rest) = line.split_once(": ")?;
            (name == model_type).then_some(rest)
        });
        // Three kinds of words: `key=value`, `key>alias`, `@type`.
        for word in line.unwrap_or_default().split(' ') {
            if let Some((key, value)) = word.split_once('=') {
                all.values.push((key, value));
            } else if let Some((key, other)) = word.split_once('>') {
                all.aliases.push((key, other));
            } else if let Some((_, text_type)) = word.split_once('@') {
                all.text_type = Some(text_type);
            }
        }
        all
    }

    /// The default of a key, or of the one that it is another name of.
    pub(crate) fn value(&self, key: &str) -> Value {
        // The default may be stated for any of the key's names.
        let found = self.names(key).find_map(|name| self.values.iter().find(|(key, _)| *key == name));
        found.map_or(Value::Nothing, |(_, value)| Value::plain(value))
    }

    /// The type of the text model in a composite one.
    pub(crate) fn text_type(&self) -> Option<&'static str> {
        self.text_type
    }

    /// A default that is yes or no.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Value::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    /// A key and its other names.
    pub(crate) fn names<'k>(&'k self, key: &'k str) -> impl Iterator<Item = &'k str> {
        // Both ways: configurations use either name.
        let others = self.aliases.iter().filter_map(move |&(one, other)| match key {
            key if key == one => Some(other),
            key if key == other => Some(one),
            _ => None,
        });
        std::iter::once(key).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::{Defaults, definitions, model_types};
    use crate::value::Value;

    #[test]
    fn every_type_can_be_read_and_no_name_stands_twice() {
        let mut seen: Vec<&str> = Vec::new();
        for model_type in model_types() {
            assert!(!seen.contains(&model_type), "{model_type} stands twice");
            assert!(definitions(model_type).is_some(), "{model_type}");
            seen.push(model_type);
        }
        assert!(seen.len() > 100);
        assert!(definitions("nobody").is_none());
    }

    #[test]
    fn defaults_go_by_every_name_of_a_key() {
        let gpt2 = Defaults::for_model_type("gpt2");
        assert_eq!(gpt2.value("n_embd"), Value::Whole(768));
        assert_eq!(gpt2.value("hidden_size"), Value::Whole(768));
        assert_eq!(gpt2.value("n_inner"), Value::Nothing);
        assert_eq!(Defaults::for_model_type("nobody").value("hidden_size"), Value::Nothing);
    }
}
