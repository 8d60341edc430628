//! Arguments of transformers' Trainer in groups, as a custom program has them in its settings file: `model.name`,
//! `lora.r`, `training.per_device_train_batch_size`. One group holds the Trainer's arguments under their own names; the
//! purpose of other groups follows from their names, and any other key keeps its full path.

use crate::leaves::Scalars;
use shardscope_config_tree::Node;

/// Keys that identify the Trainer's group: the first, and one of the others.
const BATCH: &str = "per_device_train_batch_size";
const BESIDE: [&str; 4] = ["gradient_accumulation_steps", "num_train_epochs", "learning_rate", "output_dir"];
/// Arguments of the Trainer that are dictionaries.
const DICTIONARIES: [&str; 2] = ["fsdp_config", "accelerator_config"];
/// Groups of a training with preferences, rollouts or a teacher, which the Trainer's arguments alone do not reveal.
const OTHERS: [&str; 9] = ["grpo", "ppo", "rl", "reward", "teacher", "distill", "dpo", "orpo", "kto"];
/// Suffixes of group names that carry no meaning (`lora_config`).
const ENDS: [&str; 6] = ["_config", "_args", "_arguments", "_configuration", "_settings", "_params"];

/// Names of keys in custom programs, and the corresponding names of the Trainer or PEFT.
type Names = &'static [(&'static str, &'static str)];

const LENGTHS: Names = &[
    ("max_seq_length", "max_seq_length"),
    ("max_seq_len", "max_seq_length"),
    ("max_sequence_length", "max_seq_length"),
    ("max_length", "max_seq_length"),
    ("max_tokens", "max_seq_length"),
    ("seq_length", "max_seq_length"),
    ("cutoff_len", "max_seq_length"),
    ("block_size", "max_seq_length"),
    ("model_max_length", "max_seq_length"),
    ("packing", "packing"),
];
const MODEL: Names = &[
    ("name", "model_name_or_path"),
    ("name_or_path", "model_name_or_path"),
    ("model_name", "model_name_or_path"),
    ("model_id", "model_name_or_path"),
    ("base_model", "model_name_or_path"),
    ("base", "model_name_or_path"),
    ("path", "model_name_or_path"),
    ("id", "model_name_or_path"),
    ("pretrained", "model_name_or_path"),
    ("dtype", "torch_dtype"),
    // As the Trainer places the model.
    ("device", "model_device"),
];
const AT_TOP: Names = &[
    ("model_name", "model_name_or_path"),
    ("model_id", "model_name_or_path"),
    ("base_model", "model_name_or_path"),
];
const ADAPTERS: Names = &[
    ("enabled", "use_peft"),
    ("enable", "use_peft"),
    ("use", "use_peft"),
    ("use_lora", "use_peft"),
    ("r", "lora_r"),
    ("rank", "lora_r"),
    ("alpha", "lora_alpha"),
    ("dropout", "lora_dropout"),
    ("target_modules", "lora_target_modules"),
    ("modules", "lora_target_modules"),
    ("bias", "lora_bias"),
];
const BITS: Names = &[
    ("quant_type", "bnb_4bit_quant_type"),
    ("compute_dtype", "bnb_4bit_compute_dtype"),
    ("use_double_quant", "bnb_4bit_use_double_quant"),
    ("double_quant", "bnb_4bit_use_double_quant"),
];
const TRAINER: Names = &[("optimizer", "optim"), ("max_length", "max_seq_length")];

/// The purpose of a group.
enum Part {
    /// Its listed keys get the Trainer's names; the others keep their own.
    Own(Names),
    /// The same, and adapters train.
    Adapters,
    /// Only the listed keys are renamed; the others stay under the group's name.
    Listed(Names),
}

/// Whether a settings file has this form.
pub(super) fn is_grouped(root: &Node) -> bool {
    group(root).is_some()
}

/// Its scalars under the Trainer's own names; `None` if it does not have this form.
pub(super) fn scalars(root: &Node) -> Option<Scalars> {
    let of_trainer = group(root)?;
    let mut scalars = Scalars::default();
    for leaf in Scalars::from_node(root).all() {
        let (top, rest) = leaf.path.split_once('.').unwrap_or(("", &leaf.path));
        let named = |names: Names| names.iter().find(|(key, _)| *key == rest).map(|(_, own)| *own);
        let path = match part(top, of_trainer) {
            _ if top.is_empty() => named(AT_TOP).or_else(|| named(LENGTHS)).unwrap_or(rest),
            Some(Part::Own(names)) => named(names).or_else(|| named(LENGTHS)).unwrap_or(rest),
            Some(Part::Adapters) => named(ADAPTERS).unwrap_or(rest),
            Some(Part::Listed(names)) => named(names).unwrap_or(&leaf.path),
            None => &leaf.path,
        };
        let is_first = |scalars: &Scalars| scalars.all().iter().all(|earlier| earlier.path != "use_peft");
        if matches!(part(top, of_trainer), Some(Part::Adapters)) && path != "use_peft" && is_first(&scalars) {
            scalars.push("use_peft", "true", leaf.span, None);
        }
        scalars.push(path, &leaf.value, leaf.span, leaf.hole.clone());
    }
    Some(scalars)
}

/// The name of the group with the Trainer's arguments, if there is only one and it trains on plain samples.
fn group(root: &Node) -> Option<&str> {
    if root.get(BATCH).is_some() {
        return None;
    }
    let holds = |node: &Node| node.get(BATCH).is_some() && BESIDE.iter().any(|key| node.get(key).is_some());
    let mut groups = root.entries().iter().filter(|entry| holds(&entry.node));
    let found = groups.next().filter(|_| groups.next().is_none())?;
    // Nested settings mean several ways to train, except for arguments of the Trainer that are dictionaries.
    let is_plain = |key: &str, node: &Node| {
        node.entries().is_empty() || key.ends_with("_kwargs") || DICTIONARIES.contains(&key)
    };
    let plain = found.node.entries().iter().all(|entry| is_plain(&entry.key, &entry.node));
    let other = |key: &str| key.split('_').any(|part| OTHERS.contains(&part));
    let trains = root.entries().iter().all(|entry| !other(&entry.key.to_ascii_lowercase()));
    (plain && trains).then_some(found.key.as_str())
}

fn part(group: &str, of_trainer: &str) -> Option<Part> {
    let lower = group.to_ascii_lowercase();
    let name = ENDS.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    Some(match name {
        _ if group == of_trainer => Part::Own(TRAINER),
        "model" | "base_model" => Part::Own(MODEL),
        "lora" | "peft" | "adapter" | "adapters" | "qlora" => Part::Adapters,
        "quantization" | "quant" | "bnb" | "bitsandbytes" => Part::Own(BITS),
        "data" | "dataset" | "datasets" | "tokenizer" | "tokenization" | "sequence" => Part::Listed(LENGTHS),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::scalars;
    use shardscope_config_tree::read_yaml;

    fn paths(text: &str) -> Option<Vec<String>> {
        let tree = read_yaml(text, 0);
        let scalars = scalars(tree.documents.first()?)?;
        Some(scalars.all().iter().map(|leaf| format!("{}={}", leaf.path, leaf.value)).collect())
    }

    #[test]
    fn groups_are_recognised_by_their_names() {
        let own = "training:\n  per_device_train_batch_size: 4\n  learning_rate: 1.0e-4\n  optimizer: adamw_torch\n";
        let beside = "model:\n  name: a/b\n  dtype: bfloat16\nlora_config:\n  r: 8\ndata:\n  max_length: 512\n  path: c\nx:\n  y: 1\n";
        assert_eq!(
            paths(&format!("{own}{beside}")).expect("groups").join(" "),
            "per_device_train_batch_size=4 learning_rate=1.0e-4 optim=adamw_torch model_name_or_path=a/b torch_dtype=bfloat16 \
             use_peft=true lora_r=8 max_seq_length=512 data.path=c x.y=1"
        );
        for other in [
            "teacher:\n  name: c\n",
            "second:\n  per_device_train_batch_size: 1\n  output_dir: b\n",
            "grpo:\n  beta: 0\n",
        ] {
            assert_eq!(paths(&format!("{own}{other}")), None, "{other}");
        }
        assert_eq!(paths(&format!("{own}  lora:\n    r: 4\n")), None);
        assert_eq!(paths("per_device_train_batch_size: 4\nlearning_rate: 1.0e-4\n"), None);
    }
}
