//! Pipeline stages that Megatron-Bridge's functions spell out for models whose number of layers is not divisible by the
//! number of stages (`_get_deepseek_v3_pipeline_layout` of `recipes/deepseek/h100/deepseek_v3.py`,
//! `_get_kimi_k2_pipeline_layout`, `_get_moonlight_pipeline_layout`, `_get_olmoe_pipeline_layout`; commit 067f987), and
//! when they are called again (`scripts/performance/utils/overrides.py`).

use super::super::leaves::Leaf;
use shardscope_python::tree::{Tree, text};

/// The path of a layout.
pub(super) const LAYOUT: &str = "model.pipeline_model_parallel_layout";
const STAGES: &str = "model.pipeline_model_parallel_size";
const CHUNKS: &str = "model.virtual_pipeline_model_parallel_size";
const DEPTHS: &str = "model.mtp_num_layers";

/// A model whose recipes have such a function.
struct Model {
    /// The prefix of its recipes' names.
    recipes: &'static str,
    layers: u64,
    /// Whether the last stage holds the depths of multi-token prediction.
    predicts: bool,
    /// Stages, and chunks of each, that the function supports.
    sizes: &'static [(u64, u64)],
}

const MODELS: [Model; 4] = [
    Model {
        recipes: "deepseek_v3",
        layers: 61,
        predicts: true,
        sizes: &[(4, 1), (8, 1), (4, 2), (16, 1), (8, 2), (4, 4)],
    },
    Model {
        recipes: "kimi_k2",
        layers: 61,
        predicts: false,
        sizes: &[(4, 1), (8, 1), (4, 2), (16, 1), (8, 2), (4, 4), (2, 8)],
    },
    Model {
        recipes: "moonlight_16b",
        layers: 27,
        predicts: false,
        // Its eight parts would hold 31 layers in total, which Megatron rejects.
        sizes: &[(2, 1), (4, 1), (2, 2)],
    },
    Model { recipes: "olmoe_7b", layers: 16, predicts: false, sizes: &[(2, 1), (4, 1), (2, 2)] },
];

impl Model {
    fn of(recipe: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| recipe.starts_with(model.recipes))
    }

    /// The stages in Megatron's notation: every chunk has the same number of layers, the last one the rest. Empty for
    /// one chunk, `None` if the function rejects the sizes.
    fn layout(&self, stages: u64, chunks: u64, depths: u64) -> Option<String> {
        if (stages, chunks) == (1, 1) {
            return Some(String::new());
        }
        if !self.sizes.contains(&(stages, chunks)) {
            return None;
        }
        let parts = stages * chunks;
        let each = self.layers.div_ceil(parts);
        let last = self.layers.checked_sub(each * (parts - 1))?;
        let depths = if self.predicts { depths } else { 0 };
        // Real recipes have one depth; the cap only bounds the string.
        let depths = "m".repeat(usize::try_from(depths).unwrap_or(0).min(8));
        // The chunks between the first and the last.
        let between = match parts - 2 {
            0 => String::new(),
            between => format!("(t*{each}|)*{between}"),
        };
        Some(format!("Et*{each}|{between}t*{last}{depths}L"))
    }
}

/// A whole number in a recipe; `missing` if it is not set.
fn number(tree: &Tree, path: &str, missing: u64) -> u64 {
    text(tree, path).and_then(|value| value.parse().ok()).unwrap_or(missing)
}

/// Depths of multi-token prediction: one if the recipe leaves them to the checkpoint, none if it sets `None`.
fn depths(tree: &Tree) -> u64 {
    text(tree, DEPTHS).map_or(1, |value| value.parse().unwrap_or(0))
}

/// Replaces a recipe's call for the stages by the stages.
pub(super) fn fill(leaves: &mut Vec<Leaf>, tree: &Tree, recipe: &str) {
    let Some(at) = leaves.iter().position(|leaf| leaf.path == LAYOUT && leaf.hole.is_some()) else { return };
    let Some(model) = Model::of(recipe) else { return };
    match model.layout(number(tree, STAGES, 1), number(tree, CHUNKS, 1), depths(tree)) {
        Some(layout) => {
            leaves[at].value = layout;
            leaves[at].hole = None;
        }
        // DeepSeek-V3's function leaves the layout unset.
        None => {
            leaves.remove(at);
        }
    }
}

/// The performance scripts call the function again if their own options change the stages, unless they also give a
/// layout. If the function has none, DeepSeek-V3 keeps the recipe's layout and Kimi K2 drops it; a layout that Kimi
/// K2's recipe spells out is always kept.
pub(super) fn asked_again(changes: &mut Vec<Leaf>, tree: &Tree, recipe: &str) {
    let changed = |path: &str| changes.iter().rev().find(|leaf| leaf.path == path);
    let Some(by) = changed(STAGES).or_else(|| changed(CHUNKS)) else { return };
    if changed(LAYOUT).is_some() || changes.iter().any(|leaf| leaf.path == STAGES && leaf.hole.is_some()) {
        return;
    }
    let Some(model) = Model::of(recipe).filter(|model| matches!(model.recipes, "deepseek_v3" | "kimi_k2"))
    else {
        return;
    };
    let written = text(tree, LAYOUT).is_some_and(|layout| !layout.is_empty());
    if model.recipes == "kimi_k2" && written {
        return;
    }
    let size = |path: &str| match changed(path) {
        Some(leaf) => leaf.value.parse().unwrap_or(1),
        None => number(tree, path, 1),
    };
    let layout = model.layout(size(STAGES), size(CHUNKS), depths(tree));
    let layout = if model.predicts { layout } else { Some(layout.unwrap_or_default()) };
    if let Some(value) = layout {
        changes.push(Leaf { path: LAYOUT.to_owned(), value, span: by.span, ..Leaf::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::Model;

    fn layout(recipe: &str, stages: u64, chunks: u64) -> Option<String> {
        Model::of(recipe).and_then(|model| model.layout(stages, chunks, 1))
    }

    #[test]
    fn stages_are_what_the_functions_return() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(layout("deepseek_v3_pretrain_config", 16, 1), some("Et*4|(t*4|)*14t*1mL"));
        assert_eq!(layout("deepseek_v3_pretrain_config", 8, 1), some("Et*8|(t*8|)*6t*5mL"));
        assert_eq!(layout("deepseek_v3_pretrain_config", 4, 1), some("Et*16|(t*16|)*2t*13mL"));
        assert_eq!(layout("kimi_k2_pretrain_config", 2, 8), some("Et*4|(t*4|)*14t*1L"));
        assert_eq!(layout("moonlight_16b_sft_config", 2, 1), some("Et*14|t*13L"));
        assert_eq!(layout("moonlight_16b_sft_config", 2, 2), some("Et*7|(t*7|)*2t*6L"));
        assert_eq!(layout("moonlight_16b_sft_config", 8, 1), None);
        assert_eq!(layout("olmoe_7b_sft_config", 4, 1), some("Et*4|(t*4|)*2t*4L"));
        // Sizes that the functions do not support, and a single stage.
        assert_eq!(layout("deepseek_v3_pretrain_config", 2, 8), None);
        assert_eq!(layout("deepseek_v3_pretrain_config", 1, 1), some(""));
        assert_eq!(layout("llama3_70b_pretrain_config", 4, 1), None);
    }
}
