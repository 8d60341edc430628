//! The tables that reading needs, for a program that gets them after its start.

use crate::formats::provide_bases;
use crate::formats::recipes::provide_recipes;

/// The tables' files, in the order of [`provide_tables`].
pub const TABLES: [&str; 6] =
    ["bridge.tsv", "titan.tsv", "models.tsv", "rules.txt", "defaults.txt", "nemo-rl.txt"];

/// Gives a program with the feature `tables-later` its tables: recipes by name, models by name, what model types are made
/// of, and what NeMo-RL's own files set. Until then a text that needs one is answered with what is missing, never with another plan.
pub fn provide_tables([bridge, titan, models, rules, defaults, nemo]: [String; 6]) {
    provide_recipes(bridge, titan);
    shardscope_catalog::provide_models(models);
    shardscope_architectures::provide_rules(rules, defaults);
    provide_bases(nemo);
}
