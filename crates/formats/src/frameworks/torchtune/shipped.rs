//! The configurations that torchtune ships, which `tune run --config llama3_1/8B_lora` takes by name.

use crate::leaves::Leaf;

/// Their settings that change a figure, one configuration per line; the file's header describes the format.
const TABLE: &str = include_str!("shipped.tsv");
/// The release that they come from, the latest one.
const RELEASE: &str = "torchtune 0.6.1";

/// The lines of the table: name and settings.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

/// Whether torchtune ships a configuration of that name.
pub fn is_shipped(name: &str) -> bool {
    lines().any(|(known, _)| known == name && name != USUAL)
}

/// The name of the line with the settings that most of them share.
const USUAL: &str = "*";

/// The settings of the configuration of that name, each attributed to the file that states it; empty if there is none.
pub(super) fn shipped(name: &str) -> Vec<Leaf> {
    let said = |wanted: &str| lines().find(|(known, _)| *known == wanted).map(|(_, said)| said);
    let (Some(own), Some(usual)) = (said(name).filter(|_| name != USUAL), said(USUAL)) else {
        return Vec::new();
    };
    let file = format!("{name}.yaml of {RELEASE}");
    let left_out = |path: &str| own.split(' ').any(|word| word.strip_prefix('-') == Some(path));
    let pairs = |text: &'static str| text.split(' ').filter_map(|word| word.split_once('='));
    // If two state the same path, the later one counts.
    pairs(usual)
        .filter(|(path, _)| !left_out(path))
        .chain(pairs(own))
        .map(|(path, value)| Leaf::of_base(&file, path, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{is_shipped, lines, shipped};

    /// `recipes/configs/llama3_1/8B_lora.yaml` and `llama3_2/1B_full_single_device.yaml` of torchtune 0.6.1, by key.
    #[test]
    fn configurations_are_what_their_files_say() {
        let said = |name: &str, path: &str| {
            shipped(name).iter().rfind(|leaf| leaf.path == path).map(|leaf| leaf.value.clone())
        };
        for (name, path, value) in [
            ("llama3_1/8B_lora", "model._component_", Some("torchtune.models.llama3_1.lora_llama3_1_8b")),
            ("llama3_1/8B_lora", "model.lora_rank", Some("8")),
            ("llama3_1/8B_lora", "enable_activation_checkpointing", Some("false")),
            ("llama3_1/8B_lora", "gradient_accumulation_steps", Some("8")),
            ("llama3_1/8B_lora", "tokenizer.max_seq_len", None),
            ("llama3_2/1B_full_single_device", "batch_size", Some("4")),
            ("llama3_2/1B_full_single_device", "gradient_accumulation_steps", Some("1")),
            (
                "llama3_2/1B_full_single_device",
                "optimizer._component_",
                Some("bitsandbytes.optim.PagedAdamW8bit"),
            ),
            ("llama3_2/1B_full_single_device", "optimizer.fused", None),
            ("llama3_2/1B_full_single_device", "model.lora_attn_modules", None),
        ] {
            assert_eq!(said(name, path).as_deref(), value, "{name}: {path}");
        }
        assert!(!is_shipped("*") && !is_shipped("mine.yaml") && shipped("*").is_empty());
        assert_eq!(lines().count(), 139);
    }
}
