//! Megatron-Bridge's recipes and torchtitan's registries by name, as tables that `examples/recipes.rs` writes from checkouts of
//! them (commits 067f987 and b5bcd76 of August 2026): what each function comes to, kept to what changes a figure.
//!
//! The first line names the paths; every other one is a recipe: its name, then `N=value` for path number N. `?` is a value
//! that its Python computes, `!` a call that is not followed, `@` the recipe that the name stands for.

use shardscope_source::LaterText;

use shardscope_python::evaluate::Outcome;
use shardscope_python::tree::{Scalar, Tree};

/// Until a program with the feature `tables-later` is given these, no recipe is known by its name.
pub(crate) static BRIDGE: LaterText = LaterText::new(
    "bridge.tsv",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("bridge.tsv")) },
);
pub(crate) static TITAN: LaterText = LaterText::new(
    "titan.tsv",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("titan.tsv")) },
);
/// Names for names that are followed.
const DEEPEST: u32 = 4;

/// What the recipe of that name comes to.
pub(super) fn outcome(name: &str) -> Option<Outcome> {
    follow(BRIDGE.text(), name, 0)
}

/// What a registry's configuration comes to, by the words of torchtitan's command.
pub(super) fn titan(module: &str, config: &str) -> Option<Outcome> {
    follow(TITAN.text(), &format!("{module}.{config}"), 0)
}

/// What a function of torchtitan's registries comes to, by its own name, where one alone has it.
pub(super) fn titan_by_name(function: &str) -> Option<Outcome> {
    let mut named = titan_names().filter(|name| name.split_once('.').is_some_and(|(_, own)| own == function));
    let name = named.next().filter(|_| named.next().is_none())?;
    follow(TITAN.text(), name, 0)
}

/// The configurations of torchtitan's registries.
pub(super) fn titan_names() -> impl Iterator<Item = &'static str> {
    TITAN.text().lines().skip(1).filter_map(|line| line.split('\t').next())
}

/// The same without what is not followed.
pub(super) fn recipe(name: &str) -> Option<Tree> {
    outcome(name).map(|outcome| outcome.tree)
}

fn follow(table: &str, name: &str, depth: u32) -> Option<Outcome> {
    let mut lines = table.lines();
    let paths: Vec<&str> = lines.next()?.split('\t').collect();
    let line = lines.find(|line| line.split('\t').next() == Some(name))?;
    let mut outcome = Outcome::default();
    for cell in line.split('\t').skip(1) {
        if let Some(other) = cell.strip_prefix('@') {
            return if depth == DEEPEST { None } else { follow(table, other, depth + 1) };
        }
        if let Some(call) = cell.strip_prefix('!') {
            outcome.unknown.push(call.to_owned());
            continue;
        }
        let Some((number, value)) = cell.split_once('=') else { continue };
        let Some(path) = number.parse::<usize>().ok().and_then(|number| paths.get(number)) else { continue };
        let open = value == "?";
        let scalar = Scalar {
            text: if open { String::new() } else { value.to_owned() },
            hole: open.then(|| "the recipe's Python".to_owned()),
            at: 0,
        };
        outcome.tree.push(((*path).to_owned(), scalar));
    }
    Some(outcome)
}

/// The names of all recipes.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BRIDGE.text().lines().skip(1).filter_map(|line| line.split('\t').next())
}

#[cfg(test)]
mod tests {
    use super::{names, outcome, recipe, titan, titan_names};
    use shardscope_python::tree::text;

    #[test]
    fn a_recipe_is_what_its_function_comes_to() {
        let tree = recipe("llama3_70b_pretrain_config").expect("a recipe");
        // recipes/llama/h100/llama3.py: the row of MARKET's question, TP 4, PP 4, VPP 5, CP 2.
        for (path, value) in [
            ("model.tensor_model_parallel_size", "4"),
            ("model.pipeline_model_parallel_size", "4"),
            ("model.virtual_pipeline_model_parallel_size", "5"),
            ("model.context_parallel_size", "2"),
            ("model.sequence_parallel", "true"),
            ("mixed_precision", "bf16_mixed"),
        ] {
            assert_eq!(text(&tree, path), Some(value), "{path}");
        }
        assert!(recipe("llama3_71b_pretrain_config").is_none());
    }

    #[test]
    fn a_registrys_configuration_is_what_its_function_comes_to() {
        let tree = titan("llama3", "llama3_405b").expect("a configuration").tree;
        for (path, value) in [
            ("parallelism.tensor_parallel_degree", "8"),
            ("training.num_tokens_per_microbatch_per_dp_rank", "16384"),
            ("activation_checkpoint", "FullAC.Config"),
            ("hf_assets_path", "./assets/hf/Llama-3.1-405B"),
        ] {
            assert_eq!(text(&tree, path), Some(value), "{path}");
        }
        assert!(titan_names().count() > 20);
    }

    #[test]
    fn every_name_leads_to_a_recipe_with_a_batch() {
        let mut count = 0;
        for name in names() {
            let tree = outcome(name).unwrap_or_else(|| panic!("{name} leads nowhere")).tree;
            assert!(text(&tree, "train.global_batch_size").is_some(), "{name}");
            count += 1;
        }
        assert!(count > 400, "{count}");
    }
}
