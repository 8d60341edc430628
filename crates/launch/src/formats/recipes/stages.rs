//! Pipeline stages that Megatron-Bridge's functions write out for models whose layers no number of stages divides
//! (`_get_deepseek_v3_pipeline_layout` of `recipes/deepseek/h100/deepseek_v3.py`, `_get_kimi_k2_pipeline_layout`,
//! `_get_moonlight_pipeline_layout`, `_get_olmoe_pipeline_layout`; commit 067f987), and when they are asked again
//! (`scripts/performance/utils/overrides.py`).

use super::super::leaves::Leaf;
use shardscope_python::tree::{Tree, text};

/// The path of a layout.
pub(super) const LAYOUT: &str = "model.pipeline_model_parallel_layout";
const STAGES: &str = "model.pipeline_model_parallel_size";
const CHUNKS: &str = "model.virtual_pipeline_model_parallel_size";
const DEPTHS: &str = "model.mtp_num_layers";

/// A model whose recipes have such a function.
struct Model {
    /// How the names of its recipes begin.
    recipes: &'static str,
    layers: u64,
    /// Whether the last stage holds the depths of multi-token prediction.
    predicts: bool,
    /// Stages, and chunks of each, that the function knows.
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
        // Its eight parts hold 31 layers in all, which Megatron refuses.
        sizes: &[(2, 1), (4, 1), (2, 2)],
    },
    Model { recipes: "olmoe_7b", layers: 16, predicts: false, sizes: &[(2, 1), (4, 1), (2, 2)] },
];

impl Model {
    fn of(recipe: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| recipe.starts_with(model.recipes))
    }

    /// The stages in Megatron's letters: every chunk as many layers, the last what is left. Empty for one chunk, none where the function
    /// refuses the sizes.
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
        // Real recipes have one depth; more than a few are none.
        let depths = "m".repeat(usize::try_from(depths).unwrap_or(0).min(8));
        // Between the first chunk and the last.
        let between = match parts - 2 {
            0 => String::new(),
            between => format!("(t*{each}|)*{between}"),
        };
        Some(format!("Et*{each}|{between}t*{last}{depths}L"))
    }
}

/// A whole number of a recipe's; `missing` where it says nothing.
fn number(tree: &Tree, path: &str, missing: u64) -> u64 {
    text(tree, path).and_then(|value| value.parse().ok()).unwrap_or(missing)
}

/// Depths of multi-token prediction: one where the recipe leaves them to the checkpoint, none where it says `None`.
fn depths(tree: &Tree) -> u64 {
    text(tree, DEPTHS).map_or(1, |value| value.parse().unwrap_or(0))
}

/// Puts the stages in the place of a recipe's call for them.
pub(super) fn fill(leaves: &mut Vec<Leaf>, tree: &Tree, recipe: &str) {
    let Some(at) = leaves.iter().position(|leaf| leaf.path == LAYOUT && leaf.hole.is_some()) else { return };
    let Some(model) = Model::of(recipe) else { return };
    match model.layout(number(tree, STAGES, 1), number(tree, CHUNKS, 1), depths(tree)) {
        Some(layout) => {
            leaves[at].value = layout;
            leaves[at].hole = None;
        }
        // DeepSeek-V3's keeps what there is, which is nothing.
        None => {
            leaves.remove(at);
        }
    }
}

/// The performance scripts ask again where their own options change the stages, unless they give a layout too: DeepSeek-V3's keeps the
/// recipe's where the function has none, Kimi K2's drops it, and keeps one that its recipe writes in letters.
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
        // Unknown to the functions, and one stage.
        assert_eq!(layout("deepseek_v3_pretrain_config", 2, 8), None);
        assert_eq!(layout("deepseek_v3_pretrain_config", 1, 1), some(""));
        assert_eq!(layout("llama3_70b_pretrain_config", 4, 1), None);
    }
}
