//! The keys of trainers that run Hugging Face transformers models: its Trainer, TRL, LLaMA-Factory, axolotl, ms-swift
//! and scripts based on them. One table, `vocabulary.txt`; differences between trainers are in [`super::dialect`].

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::Effect;
use shardscope_plan::Field;
use shardscope_source::LaterText;

/// In a program with the feature `tables-later` no key of a trainer is known until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "vocabulary.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("vocabulary.txt")) },
);

/// The meaning of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// Its value is that of a setting.
    Take(Field),
    /// It names the model.
    Model,
    /// It is read by dedicated code.
    Own,
    /// It changes figures and is not modelled, except for these values, separated by blanks.
    Lacks(Effect, &'static str, &'static str),
    /// It changes no figure, for a reason.
    Idle(&'static str),
}

impl Meaning {
    /// Parses a line of the table.
    fn stated(line: &'static str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "take" => Self::Take(Field::named(rest)?),
            "model" => Self::Model,
            "own" => Self::Own,
            "lacks" => {
                let mut parts = rest.split(" | ");
                let effect = Effect::named(parts.next()?)?;
                Self::Lacks(effect, parts.next()?, parts.next().unwrap_or_default())
            }
            "idle" => Self::Idle(rest),
            _ => return None,
        })
    }
}

/// The meaning of the key; dashes count as underscores. If there are two, the first one counts.
pub(super) fn find(key: &str) -> Option<Meaning> {
    static MEANINGS: OnceLock<HashMap<&str, Meaning>> = OnceLock::new();
    let meanings = MEANINGS.get_or_init(|| {
        let mut meanings = HashMap::new();
        for (meaning, key) in keys() {
            if let Some(meaning) = meaning {
                meanings.entry(key).or_insert(meaning);
            }
        }
        meanings
    });
    meanings.get(key.replace('-', "_").to_ascii_lowercase().as_str()).copied()
}

/// Every key of the table with its meaning.
fn keys() -> impl Iterator<Item = (Option<Meaning>, &'static str)> {
    let mut meaning = None;
    TABLE.text().lines().filter(|line| !line.starts_with('#')).flat_map(move |line| {
        if !line.starts_with(' ') {
            meaning = line.strip_suffix(':').and_then(Meaning::stated);
        }
        let keys = if line.starts_with(' ') { line } else { "" };
        keys.split_ascii_whitespace().map(move |key| (meaning, key))
    })
}

#[cfg(test)]
mod tests {
    use super::{Meaning, find, keys};
    use shardscope_plan::Field;

    #[test]
    fn every_key_means_one_thing() {
        let mut seen: Vec<&str> = Vec::new();
        for (meaning, key) in keys() {
            assert!(meaning.is_some(), "{key} means nothing");
            assert!(!seen.contains(&key), "{key} has two meanings");
            assert_eq!(key, key.replace('-', "_").to_ascii_lowercase());
            seen.push(key);
        }
        assert!(seen.len() > 500);
    }

    #[test]
    fn keys_are_found_in_either_spelling() {
        assert!(matches!(find("micro-batch-size"), Some(Meaning::Take(Field::MicroBatchSize))));
        assert!(matches!(find("lora_dim"), Some(Meaning::Lacks(_, _, "0"))));
        assert!(matches!(find("logging_steps"), Some(Meaning::Idle("what happens around the training"))));
        assert!(find("no_such_key").is_none());
    }
}
