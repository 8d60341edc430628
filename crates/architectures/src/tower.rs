//! The vision tower of a composite configuration, counted by the rules of its type.

use shardscope_config_tree::Node;

use crate::evaluate::{Evaluation, MOST_LAYERS, Stop};
use crate::rules::tower_definitions;

/// A vision tower and what projects its output onto the language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tower {
    /// Parameters of both, exactly as the library counts them.
    pub parameters: u64,
    /// Those of the projector among them (`multi_modal_projector`, `visual.merger`).
    pub projector: u64,
    /// Transformer layers of the tower.
    pub layers: u64,
    /// Parameters of one of them.
    pub layer: u64,
    /// Width of its residual stream.
    pub hidden: u64,
    /// Patches of an image that become one token of the language model.
    pub patches: u64,
    /// Whether transformers (from 5 on) finds its embedding of patches, so that `enable_input_require_grads` reaches it
    /// (recorded: `hooked` of `tests/data/activations/vision_towers.tsv`).
    pub hooked: bool,
    /// What it keeps for backward, in the words of `shardscope_plan::VisionKept::named`; none where that is not recorded.
    pub kept: Vec<String>,
    /// Whether an audio tower is counted among its parameters.
    pub audio: bool,
    /// Names that linear layers of it share with those of decoders, by which adapters may reach it.
    pub shared: Vec<String>,
}

impl Tower {
    /// The tower of the configuration at `root` beside a language model of width `text_hidden`; none where its type has no
    /// rules, or the configuration does not state its sizes.
    pub(crate) fn read(root: &Node, whole_type: &str, text_hidden: u64) -> Option<Self> {
        // A tower that cannot be counted stops nothing by itself: it has no figures, which is said elsewhere.
        let evaluation = Evaluation::of_tower(tower_definitions(whole_type)?, root, text_hidden);
        Self::count(&evaluation).ok().flatten()
    }

    fn count(e: &Evaluation<'_>) -> Result<Option<Self>, Stop> {
        let layers = e.size("L")?;
        // `known` is the rules' own condition, for sizes that only some models of a type state.
        if !e.holds("known")? || layers == 0 || layers > MOST_LAYERS {
            return Ok(None);
        }
        Ok(Some(Self {
            parameters: e.size("total")?,
            projector: e.size("projector")?,
            layers,
            layer: e.size("layer")?,
            hidden: e.size("h")?,
            patches: e.size("patches")?,
            hooked: e.holds("hooked")?,
            audio: e.size("audio")? > 0,
            // What is not recorded leaves the parameters known.
            kept: kept(e).unwrap_or_default(),
            shared: e.words("shared")?,
        }))
    }
}

/// Sizes that say what a tower keeps, by their names in the rules.
const KEPT: [&str; 32] = [
    "heads",
    "f",
    "prefix",
    "image",
    "ends",
    "ends_hooked",
    "ends_wide",
    "ends_once",
    "ends_hooked_once",
    "ends_wide_once",
    "p",
    "patch_values",
    "ends_liger",
    "cast_tables",
    "ends_after_wide",
    "cut_layer",
    "cut_ends",
    "projector",
    "merge",
    "merge_wide",
    "merge_wide_once",
    "merge_more",
    "width_0",
    "width_1",
    "width_2",
    "width_3",
    "deep_mergers",
    "deep_projector",
    "deep",
    "deep_wide",
    "deep_wide_once",
    "deep_more",
];

/// What it keeps, where the rules know it and the configuration states its sizes; empty elsewhere.
fn kept(e: &Evaluation<'_>) -> Result<Vec<String>, Stop> {
    if !e.holds("recorded")? {
        return Ok(Vec::new());
    }
    let mut words = e.words("modules")?;
    for name in KEPT {
        // What is left out counts as 0.
        match e.size(name)? {
            0 => {}
            size => words.push(format!("{name}={size}")),
        }
    }
    Ok(words)
}
