//! ms-swift 1 and 2, whose options have other names than today's and other defaults: they become today's.
//!
//! Options and defaults: `swift/llm/utils/argument.py:SftArguments` of 2.6.1 (`__post_init__`, `select_dtype`,
//! `handle_compatibility`, `_prepare_target_modules`); model types with their checkpoints and adapted modules:
//! `swift/llm/utils/model.py`, in `swift_types.txt`.

use crate::leaves::{Leaf, Leaves, Scalars};
use crate::named::quantized_word;
use crate::{Effect, NotModelled};
use shardscope_plan::Field;

const WHOSE: &str = "ms-swift 2";

/// Options with today's names; the later of two spellings counts.
const NAMES: [(&str, &str); 14] = [
    ("batch_size", "per_device_train_batch_size"),
    ("eval_batch_size", "per_device_eval_batch_size"),
    ("sft_type", "train_type"),
    ("lora_dropout_p", "lora_dropout"),
    ("lora_modules_to_save", "modules_to_save"),
    ("lora_target_regex", "target_regex"),
    ("use_liger", "use_liger_kernel"),
    ("neftune_alpha", "neftune_noise_alpha"),
    ("deepspeed_config_path", "deepspeed"),
    ("only_save_model", "save_only_model"),
    ("safe_serialization", "save_safetensors"),
    ("evaluation_strategy", "eval_strategy"),
    ("additional_trainable_parameters", "trainable_parameters"),
    ("push_hub_strategy", "hub_strategy"),
];

/// Options that change no figure: which samples are taken and what they say, what is generated where
/// `predict_with_generate` asks for it, output and checks of the command.
const IDLE: [&str; 39] = [
    "template_type",
    "model_revision",
    "model_cache_dir",
    "custom_train_dataset_path",
    "custom_val_dataset_path",
    "custom_dataset_info",
    "train_dataset_sample",
    "val_dataset_sample",
    "train_dataset_mix_ratio",
    "train_dataset_mix_ds",
    "dataset_test_ratio",
    "dataset_sample",
    "self_cognition_sample",
    "check_dataset_strategy",
    "check_model_is_latest",
    "truncation_strategy",
    "preprocess_num_proc",
    "lazy_tokenize",
    "model_name",
    "model_author",
    "system",
    "tools_prompt",
    "use_loss_scale",
    "loss_scale_config_path",
    "max_new_tokens",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "repetition_penalty",
    "num_beams",
    "test_oom_error",
    "ignore_args_error",
    "add_output_dir_suffix",
    "hub_private_repo",
    "push_to_hub",
    "acc_strategy",
    "acc_steps",
    "metric_warmup_step",
];

/// A model type.
struct Kind {
    /// Its checkpoint on the Hub.
    checkpoint: &'static str,
    /// The modules that `DEFAULT` stands for; `None` if a pattern decides.
    modules: Option<&'static str>,
    /// Whether it has experts.
    experts: bool,
}

/// The options of an old command under today's names.
pub(super) struct Renamed {
    /// The options.
    pub(super) scalars: Scalars,
    /// Whether the model's type has experts.
    experts: bool,
}

/// Those for which `is` returns true of their name, their checkpoint and that on ModelScope.
fn kind(is: impl Fn(&str, &str, &str) -> bool) -> Option<Kind> {
    let mut modules = None;
    for line in include_str!("swift_types.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some(row) = line.strip_prefix("  ") else {
            modules = line.strip_suffix(':').filter(|names| *names != "*");
            continue;
        };
        let mut words = row.split(' ');
        if let (Some(name), Some(checkpoint)) = (words.next(), words.next())
            && is(name, checkpoint, words.clone().find(|word| word.contains('/')).unwrap_or_default())
        {
            return Some(Kind { checkpoint, modules, experts: row.ends_with(" moe") });
        }
    }
    None
}

/// ModelScope has most checkpoints under the names that the Hub has for them, below organisations of its own.
fn last(name: &str) -> &str {
    name.trim_end_matches('/').rsplit('/').next().unwrap_or(name)
}

/// The options under today's names; none if they are today's already.
pub(super) fn renamed(scalars: &Scalars) -> Option<Renamed> {
    let find = |path: &str| scalars.all().iter().rfind(|leaf| leaf.path == path && !leaf.value.is_empty());
    let said = find("model_type");
    let by_type = said.and_then(|leaf| kind(|name, _, _| name == leaf.value));
    let path = find("model_id_or_path");
    let own = path.is_some() || by_type.is_some() || find("sft_type").is_some();
    if !own || find("model").is_some() || find("adapters").is_some() {
        return None;
    }
    let by_name = path.and_then(|leaf| {
        let is = |name: &str| last(name).eq_ignore_ascii_case(last(&leaf.value));
        kind(|_, checkpoint, other| is(checkpoint) || !other.is_empty() && is(other))
    });
    let known = by_type.or(by_name);
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut put = |path: &str, value: &str, from: Option<&Leaf>| {
        leaves.push(match from {
            Some(leaf) => Leaf { path: path.to_owned(), value: value.to_owned(), ..leaf.clone() },
            None => Leaf::of_base(WHOSE, path, value),
        });
    };
    for leaf in scalars.all() {
        let path = leaf.path.as_str();
        let auto = leaf.value.eq_ignore_ascii_case("AUTO");
        match path {
            "model_type" | "model_id_or_path" | "dtype" | "target_modules" | "lora_target_modules" => {}
            // AUTO is the format of the weights, or as PEFT has it.
            "lora_dtype" | "bnb_4bit_comp_dtype" if auto => {}
            "quantization_bit" | "freeze_parameters_ratio" if leaf.value.parse() == Ok(0.0) => {}
            "max_length" if leaf.value == "-1" => {}
            "use_flash_attn" => match leaf.flag() {
                Some(true) => put("attn_impl", "flash_attention_2", Some(leaf)),
                Some(false) => put("attn_impl", "eager", Some(leaf)),
                None => put("attn_impl", &leaf.value, Some(leaf)),
            },
            _ if IDLE.contains(&path) => {}
            _ => {
                let name = NAMES.iter().find(|(own, _)| *own == path).map_or(path, |(_, name)| name);
                put(name, &leaf.value, Some(leaf));
            }
        }
    }
    match (&known, path.or(said)) {
        (Some(kind), from) => put("model", kind.checkpoint, from),
        (None, from) => from
            .into_iter()
            .for_each(|leaf| put("model", &leaf.value, from.filter(|_| !leaf.value.is_empty()))),
    }
    if find("max_length").is_none() {
        put("max_length", "2048", None);
    }
    let full = find("sft_type").is_some_and(|leaf| leaf.value == "full");
    let quantized = known.as_ref().is_some_and(|kind| quantized_word(kind.checkpoint).is_some());
    let dtype = find("dtype");
    match dtype.map_or_else(|| "auto".to_owned(), |leaf| leaf.value.to_ascii_lowercase()).as_str() {
        // Where the accelerator has bf16; checkpoints of GPTQ and AWQ are in fp16.
        "auto" if !quantized => put("torch_dtype", "bfloat16", dtype),
        "auto" | "fp16" => {
            // Weights that train stay in fp32, under autocast.
            put("torch_dtype", if full { "float32" } else { "float16" }, dtype);
            put("fp16", "true", dtype);
        }
        "fp32" => {
            put("torch_dtype", "float32", dtype);
            // Without autocast, where later releases would take fp16's.
            put("bf16", "false", dtype);
            put("fp16", "false", dtype);
        }
        other => put("torch_dtype", if other == "bf16" { "bfloat16" } else { other }, dtype),
    }
    if !full {
        let stated = find("lora_target_modules").or_else(|| find("target_modules"));
        let words = stated.map_or("DEFAULT", |leaf| leaf.value.as_str());
        put("target_modules", &targets(words, known.as_ref()), stated);
    }
    let experts = known.is_some_and(|kind| kind.experts);
    Some(Renamed { scalars: Scalars::from_leaves(leaves), experts })
}

/// Stops experts, which are modules of their own, each with linear layers, before transformers 5.
pub(super) fn lacking(leaves: &mut Leaves<'_>, renamed: &Renamed) {
    if renamed.experts || leaves.reading.count(Field::NumExperts).is_some_and(|experts| experts > 0) {
        let what = "experts of transformers 4, each with linear layers of its own (ms-swift 2)";
        let named = leaves.get("model").map_or_else(String::new, |leaf| leaf.value.clone());
        let span = leaves.get("model").and_then(|leaf| leaf.span);
        let item = NotModelled::new("model", &named, Effect::Memory, what).at_some(span);
        leaves.reading.not_modelled.push(item);
    }
}

/// The modules with adapters: names, `DEFAULT` (once `AUTO`), and `ALL`, every linear layer but the output layer.
fn targets(words: &str, kind: Option<&Kind>) -> String {
    let words = words.split([' ', ',', '[', ']']).filter(|word| !word.is_empty());
    let mut out: Vec<&str> = Vec::new();
    for word in words {
        match (word, kind.and_then(|kind| kind.modules)) {
            ("ALL", _) => return "all-linear".to_owned(),
            ("DEFAULT" | "AUTO", Some(modules)) => out.extend(modules.split(' ')),
            _ => out.push(word),
        }
    }
    out.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{kind, targets};

    #[test]
    fn default_is_what_the_type_has() {
        let of = |name: &str| kind(|known, _, _| known == name);
        let qwen = of("qwen2_5-7b-instruct").expect("a type");
        assert_eq!(qwen.checkpoint, "Qwen/Qwen2.5-7B-Instruct");
        assert_eq!(targets("DEFAULT", Some(&qwen)), "q_proj k_proj v_proj");
        assert_eq!(targets("AUTO,o_proj", Some(&qwen)), "q_proj k_proj v_proj o_proj");
        assert_eq!(targets("ALL", Some(&qwen)), "all-linear");
        let first = of("qwen-7b-chat").expect("a type");
        assert_eq!(targets("DEFAULT", Some(&first)), "c_attn");
        // A vision-language model's pattern is not in the table.
        assert_eq!(targets("DEFAULT", of("qwen2-vl-7b-instruct").as_ref()), "DEFAULT");
        assert_eq!(targets("q_proj v_proj", None), "q_proj v_proj");
        let llama = kind(|_, _, other| other == "modelscope/Llama-2-7b-ms").expect("a type");
        assert_eq!(llama.checkpoint, "meta-llama/Llama-2-7b-hf");
    }
}
