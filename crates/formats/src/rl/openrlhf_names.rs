//! OpenRLHF's option names before they had dots: `--micro_train_batch_size` for `--train.micro_batch_size`. Sources:
//! `openrlhf/cli/train_sft.py` at f2afba47b67b, `train_ppo_ray.py` at 021d1b096419, and today's versions of both.

use super::super::names;
use super::super::scalars::{Leaf, Scalars};
use super::super::trainer::words;
use crate::Argument;

/// A command has at least one of these options.
const OWN: [&str; 6] = [
    "--micro_train_batch_size",
    "--actor_num_nodes",
    "--vllm_num_engines",
    "--micro_rollout_batch_size",
    "--advantage_estimator",
    "--reward_pretrain",
];

/// Default length of prompts and of responses in `train_ppo_ray.py`. Unit: token.
const LENGTH: u64 = 1024;

/// The attention implementation depends on this if no option states it.
pub(super) const RELEASE: &str = "the release of OpenRLHF";

/// Whether a command is one of OpenRLHF's with the old names.
pub(super) fn claims(program: &str, words: &[Argument]) -> bool {
    let name = program.rsplit(['/', '.']).find(|part| *part != "py").unwrap_or(program);
    let trains = name.starts_with("train_");
    let has = |own: &str| words.iter().any(|word| word.text.split('=').next() == Some(own));
    let old = has("--pretrain") && OWN.iter().any(|own| has(own));
    old && (trains || program.contains("openrlhf"))
}

/// The words under today's names; `None` if they already have those.
pub(super) fn renamed(arguments: &[Argument]) -> Option<Scalars> {
    let scalars = words::leaves(arguments);
    let find = |name: &str| scalars.all().iter().rfind(|leaf| leaf.path == name);
    find("pretrain")?;
    let rl =
        scalars.all().iter().any(|leaf| leaf.path.starts_with("vllm_") || leaf.path.starts_with("actor_num"));
    let model = if rl { "actor" } else { "model" };
    let lengths = ["prompt_max_len", "generate_max_len"].map(find);
    let lengths_stated = lengths.iter().any(Option::is_some);
    let mut leaves: Vec<Leaf> = Vec::new();
    for leaf in scalars.all() {
        let old = leaf.path.as_str();
        let known = || {
            let now = |line: &'static str| line.split_once(' ').filter(|(name, _)| *name == old);
            names::section("openrlhf").find_map(now).map_or(old, |(_, now)| now).to_owned()
        };
        let path = match old {
            "pretrain" => format!("{model}.model_name_or_path"),
            "ref_pretrain" => "ref.model_name_or_path".to_owned(),
            "gradient_checkpointing" => format!("{model}.gradient_checkpointing_enable"),
            "actor_num_nodes" => "actor.num_nodes".to_owned(),
            "actor_num_gpus_per_node" => "actor.num_gpus_per_node".to_owned(),
            // For policies it was the sum of both lengths, computed below, until it replaced them (2026).
            "max_len" if !rl || !lengths_stated => "data.max_len".to_owned(),
            "bf16" => "ds.bf16".to_owned(),
            // Replaced it in cd7a434f (January 6, 2026).
            "param_dtype" => "ds.param_dtype".to_owned(),
            "flash_attn" => "ds.flash_attn".to_owned(),
            _ => known(),
        };
        leaves.push(Leaf { path, ..leaf.clone() });
    }
    if let Some(leaf) = find("flash_attn") {
        leaves.push(restated(leaf, "ds.attn_implementation", "flash_attention_2"));
    }
    // Eager until c250c21a (August 15, 2025), flash attention since; concatenated samples already used it before
    // (`openrlhf/cli/train_dpo.py`), and `--param_dtype` is newer than that change.
    let says = ["flash_attn", "attn_implementation", "packing_samples", "param_dtype"];
    if !says.iter().any(|name| find(name).is_some()) {
        leaves.push(Leaf::of_base("openrlhf/cli", "ds.attn_implementation", RELEASE));
    }
    // A switch of these releases (`action="store_true"`); without it samples are padded.
    if find("packing_samples").is_none() {
        leaves.push(Leaf::of_base("openrlhf/cli", "ds.packing_samples", "false"));
    }
    if let Some(last) = lengths.iter().flatten().last().filter(|_| rl) {
        let whole = |leaf: &Option<&Leaf>| leaf.map_or(Some(LENGTH), Leaf::whole);
        let [prompt, response] = [whole(&lengths[0]), whole(&lengths[1])];
        let sum = prompt.zip(response).map(|(prompt, response)| prompt.saturating_add(response).to_string());
        leaves.push(restated(last, "data.max_len", sum.as_deref().unwrap_or("")));
    }
    if find("bf16").or(find("param_dtype")).is_none() {
        leaves.push(Leaf::of_base("openrlhf/cli", "ds.bf16", "false"));
    }
    // `openrlhf/cli/train_ppo_ray.py` through 0.9; 1 and 1 in 0.10, which alone of these releases has `--param_dtype`.
    let usual = [
        ("train.micro_batch_size", "micro_train_batch_size", "4"),
        ("rollout.micro_batch_size", "micro_rollout_batch_size", "8"),
    ];
    for (path, _, value) in usual.iter().filter(|(_, old, _)| rl && find(old).is_none()) {
        let value = if find("param_dtype").is_some() { "1" } else { value };
        leaves.push(Leaf::of_base("openrlhf/cli/train_ppo_ray.py", path, value));
    }
    Some(Scalars::from_leaves(leaves))
}

/// A value derived from another leaf, at that leaf's position.
fn restated(leaf: &Leaf, path: &str, value: &str) -> Leaf {
    Leaf { path: path.to_owned(), value: value.to_owned(), ..leaf.clone() }
}
