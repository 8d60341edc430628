//! OpenRLHF's options as they were named before they got dots: `--micro_train_batch_size` for `--train.micro_batch_size`. Sources:
//! `openrlhf/cli/train_sft.py` at f2afba47b67b, `train_ppo_ray.py` at 021d1b096419, and both as they are now.

use super::super::names;
use super::super::scalars::{Leaf, Scalars};
use super::super::trainer::words;
use crate::Argument;

/// Options of which a command has one at least.
const OWN: [&str; 6] = [
    "--micro_train_batch_size",
    "--actor_num_nodes",
    "--vllm_num_engines",
    "--micro_rollout_batch_size",
    "--advantage_estimator",
    "--reward_pretrain",
];

/// What `train_ppo_ray.py` reads of prompts and of responses where neither is stated. Unit: token.
const LENGTH: u64 = 1024;

/// On what attention depends where no word says it.
pub(super) const RELEASE: &str = "the release of OpenRLHF";

/// Whether a command is one of OpenRLHF's with the old names.
pub(super) fn claims(program: &str, words: &[Argument]) -> bool {
    let name = program.rsplit(['/', '.']).find(|part| *part != "py").unwrap_or(program);
    let trains = name.starts_with("train_");
    let has = |own: &str| words.iter().any(|word| word.text.split('=').next() == Some(own));
    let old = has("--pretrain") && OWN.iter().any(|own| has(own));
    old && (trains || program.contains("openrlhf"))
}

/// The words under the names that they have now; none where they have those already.
pub(super) fn renamed(arguments: &[Argument]) -> Option<Scalars> {
    let scalars = words::leaves(arguments);
    let find = |name: &str| scalars.all().iter().rfind(|leaf| leaf.path == name);
    find("pretrain")?;
    let rl =
        scalars.all().iter().any(|leaf| leaf.path.starts_with("vllm_") || leaf.path.starts_with("actor_num"));
    let model = if rl { "actor" } else { "model" };
    let mut leaves: Vec<Leaf> = Vec::new();
    for leaf in scalars.all() {
        let old = leaf.path.as_str();
        let known = || {
            let now = |line: &'static str| line.split_once(' ').filter(|(name, _)| *name == old);
            names::section("openrlhf").find_map(now).map_or(old, |(_, now)| now).to_owned()
        };
        let path = match old {
            "pretrain" => format!("{model}.model_name_or_path"),
            "gradient_checkpointing" => format!("{model}.gradient_checkpointing_enable"),
            "actor_num_nodes" => "actor.num_nodes".to_owned(),
            "actor_num_gpus_per_node" => "actor.num_gpus_per_node".to_owned(),
            // Of policies it is the sum of both lengths, below.
            "max_len" if !rl => "data.max_len".to_owned(),
            "bf16" => "ds.bf16".to_owned(),
            "flash_attn" => "ds.flash_attn".to_owned(),
            _ => known(),
        };
        leaves.push(Leaf { path, ..leaf.clone() });
    }
    if let Some(leaf) = find("flash_attn") {
        leaves.push(restated(leaf, "ds.attn_implementation", "flash_attention_2"));
    }
    // Eager until c250c21a (August 15, 2025), flash attention since; samples that are joined took it before as well
    // (`openrlhf/cli/train_dpo.py`).
    let says = ["flash_attn", "attn_implementation", "packing_samples"];
    if !says.iter().any(|name| find(name).is_some()) {
        leaves.push(Leaf::of_base("openrlhf/cli", "ds.attn_implementation", RELEASE));
    }
    let lengths = ["prompt_max_len", "generate_max_len"].map(find);
    if let Some(last) = lengths.iter().flatten().last().filter(|_| rl) {
        let whole = |leaf: &Option<&Leaf>| leaf.map_or(Some(LENGTH), Leaf::whole);
        let [prompt, response] = [whole(&lengths[0]), whole(&lengths[1])];
        let sum = prompt.zip(response).map(|(prompt, response)| prompt.saturating_add(response).to_string());
        leaves.push(restated(last, "data.max_len", sum.as_deref().unwrap_or("")));
    }
    if find("bf16").is_none() {
        leaves.push(Leaf::of_base("openrlhf/cli", "ds.bf16", "false"));
    }
    if rl && find("micro_train_batch_size").is_none() {
        leaves.push(Leaf::of_base("openrlhf/cli/train_ppo_ray.py", "train.micro_batch_size", "4"));
    }
    Some(Scalars::from_leaves(leaves))
}

/// A value that follows from another leaf, at its place.
fn restated(leaf: &Leaf, path: &str, value: &str) -> Leaf {
    Leaf { path: path.to_owned(), value: value.to_owned(), ..leaf.clone() }
}
