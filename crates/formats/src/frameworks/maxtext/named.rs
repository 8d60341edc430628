//! Names in MaxText: models, defined in its own files, and TPU topologies.

use crate::leaves::Leaves;
use shardscope_plan::Field;

/// Models of `configs/models/` whose sizes match those on the Hub.
const MODELS: [(&str, &str); 24] = [
    ("llama2-7b", "meta-llama/Llama-2-7b-hf"),
    ("llama2-13b", "meta-llama/Llama-2-13b-hf"),
    ("llama2-70b", "meta-llama/Llama-2-70b-hf"),
    ("llama3-8b", "meta-llama/Meta-Llama-3-8B"),
    ("llama3-70b", "meta-llama/Meta-Llama-3-70B"),
    ("llama3.1-8b", "meta-llama/Llama-3.1-8B"),
    ("llama3.1-70b", "meta-llama/Llama-3.1-70B-Instruct"),
    ("llama3.1-405b", "meta-llama/Llama-3.1-405B"),
    ("llama3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
    ("mistral-7b", "mistralai/Mistral-7B-v0.1"),
    ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
    ("mixtral-8x22b", "mistralai/Mixtral-8x22B-Instruct-v0.1"),
    ("qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B"),
    ("qwen2.5-7b", "Qwen/Qwen2.5-7B"),
    ("qwen2.5-14b", "Qwen/Qwen2.5-14B"),
    ("qwen3-0.6b", "Qwen/Qwen3-0.6B"),
    ("qwen3-1.7b", "Qwen/Qwen3-1.7B"),
    ("qwen3-4b", "Qwen/Qwen3-4B"),
    ("qwen3-8b", "Qwen/Qwen3-8B"),
    ("qwen3-14b", "Qwen/Qwen3-14B"),
    ("qwen3-32b", "Qwen/Qwen3-32B"),
    ("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B"),
    ("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"),
    ("deepseek2-16b", "deepseek-ai/DeepSeek-V2-Lite"),
];

/// The Hub's name of a MaxText model; any other name unchanged.
pub(super) fn on_the_hub(name: &str) -> &str {
    MODELS.iter().find(|(own, _)| *own == name).map_or(name, |(_, hub)| hub)
}

/// Whether it is one of these models.
pub(super) fn is_known(name: &str) -> bool {
    MODELS.iter().any(|(own, _)| *own == name)
}

/// Generations of TPUs, the catalog's name, and how many of the units in a topology's name make one device: v4 and v5p
/// count cores, two of which make one (`utils/accelerator_to_spec_map.py`, `devices_per_slice`).
const GENERATIONS: [(&str, &str, u64); 4] =
    [("v4", "TPU-v4", 2), ("v5e", "TPU-v5e", 1), ("v5p", "TPU-v5p", 2), ("v6e", "TPU-v6e", 1)];

/// `compile_topology=v5p-256`: the target for which the step is compiled.
pub(super) fn topology(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("compile_topology") else { return };
    let slices = leaves.whole("compile_topology_num_slices").unwrap_or(1).max(1);
    let Some((kind, count)) = leaf.value.split_once('-') else { return };
    let known = GENERATIONS.iter().find(|(name, ..)| *name == kind);
    let (Some((_, accelerator, parts)), Ok(count)) = (known, count.parse::<u64>()) else { return };
    leaves.say(Field::Accelerator, accelerator, leaf);
    leaves.say(Field::WorldSize, &(count / parts).saturating_mul(slices).to_string(), leaf);
}
