//! Megatron-Bridge's recipes and torchtitan's registries by name, in tables that `examples/recipes.rs` writes from
//! checkouts of both (commits 067f987 and b5bcd76 of August 2026): the settings that each function evaluates to,
//! reduced to those that change a figure.
//!
//! The first line lists the paths; every other line is a recipe: its name, then `N=value` for path number N. `?` is a
//! value that its Python code computes, `!` a call that is not followed, `@` the recipe for which the name is an alias.

use crate::leaves::Leaf;
use shardscope_source::{LaterText, Span};

use shardscope_python::evaluate::Outcome;
use shardscope_python::tree::{Scalar, Tree};

/// Megatron-Bridge's recipes. In a program with the feature `tables-later` no recipe is known by
/// name until these are supplied.
pub static BRIDGE: LaterText = LaterText::new(
    "bridge.tsv",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("bridge.tsv")) },
);
/// torchtitan's recipes.
pub static TITAN: LaterText = LaterText::new(
    "titan.tsv",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("titan.tsv")) },
);
/// Longest chain of aliases that is followed.
const DEEPEST: u32 = 4;

/// A setting of a recipe, at its position in the text that begins at `base`; settings from a table have no position.
pub(super) fn leaf(path: &str, scalar: &Scalar, base: u32) -> Leaf {
    let at = u32::try_from(scalar.at).ok().filter(|at| *at > 0).map(|at| at.saturating_add(base));
    Leaf {
        path: path.to_owned(),
        value: scalar.text.clone(),
        span: at.map(|at| Span::new(at, at)),
        hole: scalar.hole.clone(),
        ..Leaf::default()
    }
}

/// The settings of the recipe of that name.
pub(super) fn outcome(name: &str) -> Option<Outcome> {
    follow(BRIDGE.text(), name, 0)
}

/// The settings of a registry's configuration, by the words of torchtitan's command.
pub(super) fn titan(module: &str, config: &str) -> Option<Outcome> {
    follow(TITAN.text(), &format!("{module}.{config}"), 0)
}

/// The settings that a function of torchtitan's registries returns, by its own name, if that is unique.
pub(super) fn titan_by_name(function: &str) -> Option<Outcome> {
    let mut named = titan_names().filter(|name| name.split_once('.').is_some_and(|(_, own)| own == function));
    let name = named.next().filter(|_| named.next().is_none())?;
    follow(TITAN.text(), name, 0)
}

/// The configurations of torchtitan's registries.
pub(super) fn titan_names() -> impl Iterator<Item = &'static str> {
    TITAN.text().lines().skip(1).filter_map(|line| line.split('\t').next())
}

/// The settings alone, without the calls that are not followed.
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
    // A call of another recipe of the table.
    let other = |call: &String| {
        let follows = depth < DEEPEST && call.as_str() != name && call.ends_with("_config");
        follows.then(|| follow(table, call, depth + 1)).flatten()
    };
    Some(match outcome.unknown.iter().find_map(other) {
        Some(base) => upon(base, outcome),
        None => outcome,
    })
}

/// Recipes of the performance scripts start from one of the library's, some of which share a name with one of their own
/// (`deepseek_v3_pretrain_config` is `deepseek_v3_pretrain_1024gpu_h100_bf16_config` of `recipes/`, and `perf_recipes/`
/// has a function of the same name). Such a call was not followed, nor were the calls that then used its result.
fn upon(mut base: Outcome, own: Outcome) -> Outcome {
    const CALLED: [&str; 2] = ["_perf_precision", "set_deepseek_v3_pipeline_model_parallel_layout"];
    let assigned = |path: &str| {
        own.tree.iter().any(|(theirs, _)| {
            path == theirs || path.strip_prefix(theirs.as_str()).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    // A model's own settings accompany its name.
    base.tree.retain(|(path, _)| {
        path.starts_with("model.") && !own.tree.iter().any(|(own, _)| own == path) || !assigned(path)
    });
    base.tree.extend(own.tree);
    let known = |call: &String| CALLED.contains(&call.as_str()) || call.ends_with("_config");
    base.unknown.extend(own.unknown.into_iter().filter(|call| !known(call)));
    base
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
        // recipes/llama/h100/llama3.py: TP 4, PP 4, VPP 5, CP 2.
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

    /// `perf_recipes/deepseek/h100/deepseek_v3.py` and `perf_recipes/qwen/h100/qwen3_moe.py`: their settings
    /// on top of the library's recipe.
    #[test]
    fn recipes_of_the_performance_scripts_stand_on_the_librarys() {
        let outcome = outcome("deepseek_v3_pretrain_64gpu_h100_fp8cs_config").expect("a recipe");
        assert!(outcome.unknown.is_empty(), "{:?}", outcome.unknown);
        for (path, value) in [
            ("model", "deepseek-ai/DeepSeek-V3"),
            ("model.pipeline_model_parallel_size", "8"),
            ("model.pipeline_model_parallel_layout", "Et|(tt|)*30mL"),
            ("model.expert_model_parallel_size", "64"),
            ("mixed_precision", "bf16_with_fp8_current_scaling_mixed"),
            ("train.global_batch_size", "1024"),
        ] {
            assert_eq!(text(&outcome.tree, path), Some(value), "{path}");
        }
        for name in names() {
            let outcome = super::outcome(name).expect(name);
            assert!(
                outcome.unknown.iter().all(|call| !call.ends_with("_config")),
                "{name}: {:?}",
                outcome.unknown
            );
        }
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
