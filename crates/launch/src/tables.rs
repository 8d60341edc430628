//! The tables that reading needs, for a program that gets them after its start.

use crate::formats::recipes::provide_recipes;
use crate::formats::{provide_bases, provide_names};

/// The tables' files, in the order of [`provide_tables`].
pub const TABLES: [&str; 7] =
    ["bridge.tsv", "titan.tsv", "models.tsv", "rules.txt", "defaults.txt", "nemo-rl.txt", "names.txt"];

/// Gives a program with the feature `tables-later` its tables: recipes by name, models by name, what model types are made
/// of, what NeMo-RL's own files set, and names that single readers know. Until then a text that needs one is answered with what is missing, never with another plan.
pub fn provide_tables([bridge, titan, models, rules, defaults, nemo, names]: [String; 7]) {
    provide_recipes(bridge, titan);
    shardscope_catalog::provide_models(models);
    shardscope_architectures::provide_rules(rules, defaults);
    provide_bases(nemo);
    provide_names(names);
}
