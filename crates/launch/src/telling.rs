//! Names of unknown settings that say what they change.

/// What such a setting is told to be.
pub(crate) const WHAT: &str = "an unknown option whose name suggests that it changes what trains and on what, what is held or how it is sharded";

/// How a part of such a name begins.
const PARTS: [&str; 24] = [
    "lora",
    "lowrank",
    "qlora",
    "peft",
    "adapter",
    "freez",
    "frozen",
    "unfreez",
    "trainable",
    "medusa",
    "eagle",
    "teacher",
    "student",
    "distill",
    "quantiz",
    "critic",
    "offload",
    "virtual",
    "parallel",
    "recompute",
    // Another encoder beside the decoder, or experts made of its MLPs (MGM's `vision_tower_aux`, MoE-LLaVA's `moe_enable`).
    "tower",
    "moe",
    "expert",
    "tune",
];
const WHOLE: [&str; 4] = ["pre_seq_len", "prefix_projection", "bits", "train_modules"];
/// How the weight of a loss ends that the program adds, over samples of its own kind (RRHF's `rrhf_weight`).
const OF_A_LOSS: [&str; 4] = ["loss_weight", "loss_coef", "loss_coeff", "_weight"];

/// Whether the name of an unknown setting says that it changes what trains, what is held or how it is sharded, and its value
/// that it does. `path` may have groups before the name, and dashes.
pub(crate) fn tells(path: &str, value: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path).to_ascii_lowercase().replace('-', "_");
    let tells = WHOLE.contains(&name.as_str())
        || OF_A_LOSS.iter().any(|end| name.ends_with(end))
        || name
            .replace("low_rank", "lowrank")
            .split('_')
            .any(|part| PARTS.iter().any(|known| part.starts_with(known)));
    tells && !is_off(&name, value)
}

/// A degree of 1 cuts nothing; of a switch it says yes. Whatever is not tuned is frozen.
fn is_off(name: &str, value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let whole = name.contains("parallel") && value.parse() == Ok(1_u64);
    let says_no = matches!(value.as_str(), "0" | "none" | "null" | "no" | "false" | "off");
    !name.starts_with("tune") && (whole || says_no)
}

#[cfg(test)]
mod tests {
    use super::tells;

    #[test]
    fn names_tell_and_values_take_it_back() {
        assert!(tells("rollout.expert_parallel_size", "8") && tells("use-quantized-messages", ""));
        assert!(!tells("rollout.expert_parallel_size", "1") && !tells("offload", "False"));
        assert!(tells("tune_mm_mlp", "False") && !tells("max_new_tokens", "256"));
    }
}
