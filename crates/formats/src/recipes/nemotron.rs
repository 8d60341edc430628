//! Settings of NVIDIA's Nemotron (`NVIDIA-NeMo/Nemotron`), which modify a recipe of Megatron-Bridge and name it
//! themselves: its function under `recipe._target_`, next to the function's arguments, and the machines of the launch
//! under `run` (`nemotron/kit/recipe_loader.py`, `docs/nemo_runspec/omegaconf.md`).

use crate::leaves::Leaf;
use crate::nemo::TARGET;
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;
use shardscope_python::evaluate::Outcome;

/// Arguments of a recipe's function for its data, and keys that name data files.
const DATA: [&str; 3] =
    ["recipe.per_split_data_args_path", "data.per_split_data_args_path", "recipe.data_paths"];
/// Keys that name the weights from which training starts, and thereby the model (`steps/_runners/megatron_bridge.py`).
const WEIGHTS: [&str; 2] = ["recipe.hf_path", "hf_model_path"];
/// The machines that the launch requests.
const MACHINES: [(&str, Field); 2] =
    [("run.env.nodes", Field::NumNodes), ("run.env.gpus_per_node", Field::GpusPerNode)];

/// The settings that modify the recipe. The length passed to its function is the model's if the model has no other.
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

/// Takes the machines that the launch requests, and stops the verdict at a model other than the recipe's.
pub(super) fn beside(reading: &mut Reading, leaves: &[Leaf], outcome: &Outcome) {
    for (path, field) in MACHINES {
        let stated = leaves.iter().find(|leaf| leaf.path == path && leaf.whole().is_some());
        if let Some(leaf) = stated {
            reading.take(Found::new(field, leaf.value.clone(), Origin::Script).by(path, leaf.span));
        }
    }
    let other = |leaf: &&Leaf| WEIGHTS.contains(&leaf.path.as_str()) && !is_own(outcome, &leaf.value);
    if let Some(leaf) = leaves.iter().find(other) {
        let what = "a model other than the recipe's";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        reading.not_modelled.push(item);
    }
}

/// Whether the recipe has the same value.
fn is_own(outcome: &Outcome, value: &str) -> bool {
    outcome.tree.iter().any(|(_, scalar)| scalar.text == value)
}
