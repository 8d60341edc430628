//! Models whose repository on the Hub brings code of its own.
//!
//! Their `config.json` has an `auto_map`; `trust_remote_code` then runs that code in the place of transformers' modules of
//! the same type (`transformers/models/auto/auto_factory.py:from_pretrained`). It keeps other tensors: Phi-3's turns its
//! logits to fp32 and keeps a shifted copy, MoEs gather each expert's tokens in a loop.

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_config_tree::Node;
use shardscope_plan::Field;

/// How the last parts of their names start, in whatever folder a copy lies. Sources: the `config.json` of each; microsoft/Phi-4 and
/// Phi-1, Qwen from 1.5 on, Falcon 3 and the models distilled from DeepSeek-R1 have no `auto_map`.
const CODED: [&str; 15] = [
    "mpt-7b",
    "mpt-30b",
    "falcon-7b",
    "falcon-40b",
    "phi-3-",
    "phi-3.5-",
    "phi-4-mini",
    "deepseek-coder-v2",
    "deepseek-v2",
    "deepseek-v3",
    "moonlight-",
    "kimi-k2",
    "minimax-m2",
    "nvidia-nemotron-",
    "nemotron-h-",
];

/// The same in full: folders of distilled models start alike.
const CODED_NAMES: [&str; 3] = ["deepseek-r1", "deepseek-r1-zero", "deepseek-r1-0528"];

/// Repositories whose copies of Phi-3 are written as Llama's or Mistral's modules, without code.
const REPACKED: &str = "unsloth/phi-";

/// What the verdict says of such a run.
const WHAT: &str = "the code in this model's repository, in the place of transformers' modules";

/// Whether the model called `name` brings code for a type that transformers has too.
pub(crate) fn is_brought(name: &str) -> bool {
    let lower = name.trim_end_matches('/').to_ascii_lowercase();
    let last = lower.rsplit('/').next().unwrap_or(&lower);
    let other = last.contains("distill") || last.contains("qwen") || lower.contains(REPACKED);
    !other && (CODED_NAMES.contains(&last) || CODED.iter().any(|start| last.starts_with(start)))
}

/// States that a repository's code runs: because the option at `path` says so, or because the program `always` trusts it.
pub(crate) fn trust(leaves: &mut Leaves<'_>, path: &str, always: bool) {
    match leaves.yes(path) {
        Some(leaf) => leaves.say(Field::TrustRemoteCode, "true", leaf),
        None if always => leaves.state(
            Field::TrustRemoteCode,
            "true",
            Origin::Derived,
            "the program trusts every repository",
        ),
        None => {}
    }
}

/// Stops a pasted `config.json` that names code of its own for a type that transformers has, where a program trusts it.
pub(crate) fn stop_beside(leaves: &mut Leaves<'_>, root: &Node) {
    if let Some(node) = root.at("auto_map.AutoModelForCausalLM") {
        let value = node.word().unwrap_or_default();
        let item = NotModelled::new("auto_map.AutoModelForCausalLM", value, Effect::Memory, WHAT)
            .at_some(Some(node.span));
        leaves.reading.not_modelled.push(item.only_at(Field::TrustRemoteCode, "true"));
    }
}

/// Stops a run of that code: because the option at `path` says so, or because the program `always` trusts repositories.
pub(crate) fn stop(leaves: &mut Leaves<'_>, named: &Leaf, name: &str, path: &str, always: bool) {
    if !is_brought(name) {
        return;
    }
    let lack = |leaf: &Leaf, value: &str| {
        NotModelled::new(&leaf.path, value, Effect::Memory, WHAT).at_some(leaf.span)
    };
    let item = match leaves.yes(path) {
        Some(leaf) => lack(leaf, "true"),
        None if always => lack(named, name),
        None => return,
    };
    leaves.reading.not_modelled.push(item);
}

#[cfg(test)]
mod tests {
    use super::is_brought;

    #[test]
    fn models_with_code_of_their_own_are_told_from_their_relatives() {
        let brought = [
            "microsoft/Phi-3-mini-4k-instruct",
            "/data/models/Phi-3-mini-4k-instruct/",
            "LLM-Research/Phi-3.5-mini-instruct",
            "deepseek-ai/DeepSeek-V2-Lite",
            "moonshotai/Kimi-K2-Base",
            "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            "nvidia/Nemotron-H-56B-Base-8K",
        ];
        for name in brought {
            assert!(is_brought(name), "{name}");
        }
        let native = [
            "microsoft/phi-4",
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
            "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
            "deepseek-ai/deepseek-llm-7b-base",
            "/data/models/deepseek-r1-7b",
            "/models/unsloth/Phi-3-mini-4k-instruct",
            "tiiuae/Falcon3-7B-Base",
            "nvidia/Llama-3.1-Nemotron-Nano-8B-v1",
            "unsloth/Phi-3-mini-4k-instruct",
        ];
        for name in native {
            assert!(!is_brought(name), "{name}");
        }
    }
}
