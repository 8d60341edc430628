//! Settings of NVIDIA's Nemotron (`NVIDIA-NeMo/Nemotron`), which change a recipe of Megatron-Bridge and name it themselves: its function
//! under `recipe._target_`, what that is given beside it, and the machines of the launch under `run` (`nemotron/kit/recipe_loader.py`,
//! `docs/nemo_runspec/omegaconf.md`).

use crate::formats::leaves::Leaf;
use crate::formats::nemo::TARGET;
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;
use shardscope_python::evaluate::Outcome;

/// What a recipe's function is given of its data, and where files of data are named.
const DATA: [&str; 3] =
    ["recipe.per_split_data_args_path", "data.per_split_data_args_path", "recipe.data_paths"];
/// Where the weights are named that a training starts from, and with them the model (`steps/_runners/megatron_bridge.py`).
const WEIGHTS: [&str; 2] = ["recipe.hf_path", "hf_model_path"];
/// What the launch asks for.
const MACHINES: [(&str, Field); 2] =
    [("run.env.nodes", Field::NumNodes), ("run.env.gpus_per_node", Field::GpusPerNode)];

/// What of the settings changes the recipe. The length that its function is given is the model's where that has no other.
pub(super) fn changes(leaves: Vec<Leaf>) -> Vec<Leaf> {
    let stated = leaves.iter().any(|leaf| leaf.path == "model.seq_length");
    let idle = |leaf: &Leaf| {
        let path = leaf.path.as_str();
        path == TARGET
            || path.starts_with("run.")
            || DATA.contains(&path)
            || path == "recipe.seq_length" && stated
            || WEIGHTS.contains(&path)
            // Off, as in the functions that have it.
            || path == "recipe.peft" && matches!(leaf.value.as_str(), "" | "null" | "none")
    };
    let mut changes: Vec<Leaf> = leaves.into_iter().filter(|leaf| !idle(leaf)).collect();
    if let Some(length) = changes.iter_mut().find(|leaf| leaf.path == "recipe.seq_length") {
        "model.seq_length".clone_into(&mut length.path);
    }
    changes
}

/// Takes the machines that the launch asks for, and stops at another model than the recipe's.
pub(super) fn beside(reading: &mut Reading, leaves: &[Leaf], outcome: &Outcome) {
    for (path, field) in MACHINES {
        let stated = leaves.iter().find(|leaf| leaf.path == path && leaf.whole().is_some());
        if let Some(leaf) = stated {
            reading.take(Found::new(field, leaf.value.clone(), Origin::Script).by(path, leaf.span));
        }
    }
    let other = |leaf: &&Leaf| WEIGHTS.contains(&leaf.path.as_str()) && !is_own(outcome, &leaf.value);
    if let Some(leaf) = leaves.iter().find(other) {
        let what = "another model than the recipe's under its settings";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        reading.not_modelled.push(item);
    }
}

/// Whether the recipe names the same.
fn is_own(outcome: &Outcome, value: &str) -> bool {
    outcome.tree.iter().any(|(_, scalar)| scalar.text == value)
}
