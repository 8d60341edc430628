//! Which weights train: all of them, adapters, adapters over quantized weights, or the last layers.

use super::dialect::Dialect;
use super::{authors, tinyllava, unsloth_full, usual_targets};
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::Field;

/// PEFT translates the names of projections into experts' weights since 0.19 (`peft/utils/transformers_weight_conversion.py`);
/// LLaMA-Factory installs at most 0.18.1 (its `pyproject.toml`), where these names mean linear layers alone; it runs with up to 0.20 since
/// May 2026 (`extras/misc.py:check_dependencies`).
const PEFT_BEFORE_EXPERTS: &str =
    "LLaMA-Factory installs PEFT 0.18, which adapts linear layers alone; with 0.19 and later set true";

pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    quantization(leaves);
    way(leaves, dialect);
    double(leaves, dialect);
    targets(leaves);
    let whose = format!("default of {}", dialect.name());
    let open =
        leaves.reading.questions.iter().any(|question| question.asks == Asked::Setting(Field::TrainType));
    if open || matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        authors::rank_left_open(leaves, dialect);
        leaves.state_all(dialect.adapters(), Origin::Default, &whose);
        if let Some(why) = dialect.names_layers() {
            leaves.state(Field::LoraByNames, "true", Origin::Derived, why);
        }
        if dialect == Dialect::LlamaFactory {
            leaves.state(Field::ConvertedExperts, "false", Origin::Default, PEFT_BEFORE_EXPERTS);
        }
        usual_targets::read(leaves, dialect);
        kernels(leaves, dialect);
    } else {
        // Ranks and targets have no effect without adapters.
        let idle = [
            Field::LoraRank,
            Field::LoraAlpha,
            Field::LoraDropout,
            Field::LoraTargetModules,
            Field::LoraByNames,
            Field::ModulesToSave,
        ];
        leaves.reading.keep(&|found| !idle.contains(&found.field));
    }
}

/// axolotl's functions that replace PEFT's modules. If none of their keys is set, it turns them on automatically,
/// except for preference and reward training, LoRA over 8 bits, models with custom code, and FSDP1 over several GPUs
/// (`axolotl/utils/schemas/config.py:check_auto_enable_lora_kernels`).
fn kernels(leaves: &mut Leaves<'_>, dialect: Dialect) {
    const KEYS: [(&str, &str); 4] = [
        ("lora_qkv_kernel", "qkv"),
        ("lora_o_kernel", "o"),
        ("lora_mlp_kernel", "mlp"),
        // Adapters of the embedding stop the verdict by their own names.
        ("lora_embedding_kernel", ""),
    ];
    let set: Vec<&Leaf> = KEYS.iter().filter_map(|(key, _)| leaves.get(key)).collect();
    if dialect != Dialect::Axolotl {
        for leaf in set.into_iter().filter(|leaf| leaf.flag() == Some(true)) {
            let what = "fused LoRA kernels in this trainer";
            let item = NotModelled::new(&leaf.path, "", Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        return;
    }
    if let Some(first) = set.first() {
        let on: Vec<&str> = KEYS
            .iter()
            .filter(|(key, word)| !word.is_empty() && leaves.flag(key) == Some(true))
            .map(|(_, word)| *word)
            .collect();
        if !on.is_empty() {
            leaves.say(Field::LoraKernels, &on.join(" "), first);
        }
        return;
    }
    let grouped =
        leaves.all().iter().any(|leaf| leaf.path.starts_with("fsdp_config") && !leaf.value.is_empty());
    let first_version = grouped
        && leaves.first(&["fsdp_version", "fsdp_config.fsdp_version"]).and_then(Leaf::whole) != Some(2);
    let eight = leaves.text("adapter") == Some("lora") && leaves.flag("load_in_8bit") == Some(true);
    let coded = leaves.flag("trust_remote_code") == Some(true);
    if leaves.get("rl").is_none() && !first_version && !eight && !coded {
        if is_old(leaves) {
            return ask_for_kernels(leaves);
        }
        let why = "axolotl turns its LoRA kernels on by itself since 0.9.1 (April 29, 2025)";
        leaves.state(Field::LoraKernels, "qkv o mlp", Origin::Default, why);
    }
}

/// Whether a file has keys of 2024, which today's axolotl still takes (`axolotl/utils/schemas/deprecated.py`), and keeps the
/// layers' tensors, so that its release decides: kernels are on by themselves since ecac7319 of April 29, 2025 (#2589), in
/// 0.9.1 and not in 0.9.0.
fn is_old(leaves: &Leaves<'_>) -> bool {
    let recomputes = leaves.get("gradient_checkpointing").is_some_and(|leaf| leaf.flag() != Some(false));
    let dated =
        leaves.has("evaluation_strategy") || leaves.has("is_llama_derived_model") || leaves.has("strict");
    dated && !recomputes
}

fn ask_for_kernels(leaves: &mut Leaves<'_>) {
    let mut found = Found::new(Field::LoraKernels, String::new(), Origin::Script);
    found.hole = Some("the release of axolotl".to_owned());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::LoraKernels),
        prompt: "Does axolotl use its LoRA kernels (qkv o mlp)? Since 0.9.1 (April 29, 2025) it turns them on by itself, \
                 earlier releases have none unless told (none)"
            .to_owned(),
        choices: ["qkv o mlp", "none"].map(str::to_owned).to_vec(),
        proposal: Some("qkv o mlp".to_owned()),
    });
}

fn way(leaves: &mut Leaves<'_>, dialect: Dialect) {
    if dialect.is_unsloth() && unsloth_full::read(leaves) {
        return;
    }
    if dialect == Dialect::Transformers && tinyllava::trains(leaves) {
        return;
    }
    let quantized = leaves.reading.value(Field::BaseQuantization).is_some();
    let lora = if quantized { "qlora" } else { "lora" };
    let keys = ["finetuning_type", "tuner_type", "train_type", "sft_type", "adapter"];
    if let Some(leaf) = leaves.first(&keys) {
        match leaf.value.as_str() {
            "lora" => leaves.say(Field::TrainType, lora, leaf),
            "qlora" => {
                leaves.say(Field::TrainType, "qlora", leaf);
                leaves.say(Field::BaseQuantization, "nf4", leaf);
            }
            // `swift/tuner_plugin/lora_llm.py`: on the decoder only, without dropout.
            "lora_llm" if dialect == Dialect::Swift => {
                leaves.say(Field::TrainType, lora, leaf);
                leaves.reading.keep(&|found| found.field != Field::LoraDropout);
                let why = "lora_llm gives PEFT no dropout";
                leaves.state(Field::LoraDropout, "0", Origin::Derived, why);
            }
            "full" | "none" => leaves.say(Field::TrainType, "full", leaf),
            "freeze" => leaves.say(Field::TrainType, "freeze", leaf),
            other => {
                let what = "adapters other than LoRA";
                let item = NotModelled::new(&leaf.path, other, Effect::Model, what).at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
            }
        }
        return;
    }
    let switches = [
        "use_peft",
        "use_lora",
        "lora_enable",
        "peft",
        "lora",
        "enable_lora",
        "with_lora",
        "use_peft_lora",
        "lora_tuning",
        "lora_training",
    ];
    if let Some(leaf) = switches.iter().find_map(|path| leaves.yes(path)) {
        leaves.say(Field::TrainType, lora, leaf);
    } else if quantized && dialect != Dialect::Axolotl {
        leaves.state(
            Field::TrainType,
            "qlora",
            Origin::Derived,
            "only adapters train over quantized weights",
        );
    }
    if let Some(leaf) = leaves.first(&["q_lora", "use_qlora"]).filter(|leaf| leaf.flag() == Some(true)) {
        leaves.say(Field::TrainType, "qlora", leaf);
        // The program itself may be supplied and state the type.
        if !quantized {
            leaves.say(Field::BaseQuantization, "nf4", leaf);
        }
    }
    // A custom script with a rank and no switch: its program may always train adapters (FastChat's `train_lora.py`), or
    // use a switch that is not known here.
    let sized = ["lora_r", "lora_rank", "lora_alpha", "lora_target_modules", "lora_dropout"];
    let sizes = |paths: &[&str]| paths.iter().any(|path| leaves.has(path));
    // TRL's own programs leave a rank without `use_peft` unread; others that read the same file may not.
    let own = dialect == Dialect::Transformers && sizes(&sized)
        || dialect == Dialect::Trl && sizes(&["lora_r", "lora_rank"]);
    let known =
        leaves.reading.value(Field::TrainType).is_some() || switches.iter().any(|path| leaves.has(path));
    // Rollouts of a program that names its model elsewhere, and its adapters as well.
    let apart = dialect == Dialect::Trl
        && leaves.has("num_generations")
        && leaves.first(&["model_name_or_path", "model_name", "model"]).is_none();
    if (own || apart) && !known {
        let (named, place) = match leaves.first(&sized).filter(|_| own) {
            Some(leaf) => ("lora_r", leaf.span),
            None => ("num_generations", leaves.get("num_generations").and_then(|leaf| leaf.span)),
        };
        let mut found = Found::new(Field::TrainType, String::new(), Origin::Script).by(named, place);
        found.hole = Some("the program that reads these options".to_owned());
        leaves.reading.take(found);
        let prompt = if own {
            "The text sets LoRA options but no known switch that turns them on. Does it train adapters (lora) or all \
             weights (full)?"
        } else {
            "The file has neither model nor adapters, which its program takes from elsewhere. Does it train adapters (lora) \
             or all weights (full)?"
        };
        leaves.reading.questions.push(Question {
            asks: Asked::Setting(Field::TrainType),
            prompt: prompt.to_owned(),
            choices: ["lora", "full"].map(str::to_owned).to_vec(),
            proposal: Some(if own && dialect == Dialect::Transformers { "lora" } else { "full" }.to_owned()),
        });
        return;
    }
    let whose = format!("default of {}", dialect.name());
    leaves.state(Field::TrainType, dialect.trains(), Origin::Default, &whose);
}

/// A file of arguments for a custom program does not state how that program modifies the model before training.
pub(super) fn left_to_program(reading: &mut Reading) {
    let by_default = |found: &Found| found.field == Field::TrainType && found.origin == Origin::Default;
    if !reading.found.iter().any(by_default) {
        return;
    }
    reading.keep(&|found| !by_default(found));
    let mut found = Found::new(Field::TrainType, String::new(), Origin::Script);
    found.hole = Some("the program that reads this file".to_owned());
    reading.take(found);
    reading.questions.push(Question {
        asks: Asked::Setting(Field::TrainType),
        prompt: "The model is built by the program that reads this file. Does it train adapters (lora) or all weights (full)?".to_owned(),
        choices: ["lora", "full"].map(str::to_owned).to_vec(),
        proposal: Some("full".to_owned()),
    });
}

fn quantization(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("load_in_4bit") {
        let kind = leaves.text("bnb_4bit_quant_type").unwrap_or("nf4").to_owned();
        leaves.say(Field::BaseQuantization, &kind, leaf);
    } else if let Some(leaf) = leaves.yes("load_in_8bit") {
        leaves.say(Field::BaseQuantization, "int8", leaf);
    }
    let method = leaves.first(&["quantization_method", "quant_method"]).map(|leaf| leaf.value.clone());
    let ours = method.as_deref().is_none_or(|method| matches!(method, "bnb" | "bitsandbytes" | "fp8"));
    let bits = ["quantization_bit", "quant_bits", "quant_bit", "bits", "load_in_bits", "load_in_kbits"];
    // The reading of a well-known program takes precedence.
    let open = leaves.reading.value(Field::BaseQuantization).is_none();
    if let Some(leaf) = leaves.first(&bits).filter(|leaf| open && leaf.whole().is_some()) {
        match (leaf.whole(), ours) {
            (Some(4), true) => leaves.say(Field::BaseQuantization, "nf4", leaf),
            (Some(8), true) => leaves.say(Field::BaseQuantization, "int8", leaf),
            (Some(16 | 32), _) => {}
            _ => {
                let what = "weights in a custom quantization format";
                let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
                leaves.reading.not_modelled.push(item);
            }
        }
    }
    // ms-swift's has no number of bits (`swift/arguments/base_args/quant_args.py:get_quantization_config`).
    if let Some(leaf) = leaves.get("quant_method").filter(|leaf| leaf.value == "fp8") {
        let what = "weights in a quantization format of their own";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // FlagAlpha/Llama2-Chinese `train/sft/finetune_clm_lora.py`: in 4 bits the
    // quantization constants are quantized, too.
    if leaves.whole("load_in_bits") == Some(4) {
        let why = "default of Llama2-Chinese's finetune_clm_lora.py";
        leaves.state(Field::DoubleQuantization, "true", Origin::Default, why);
    }
    // QLoRA's own script states the type next to its bits; blocks of both types have the same
    // size, whatever their storage type.
    for path in ["bnb_4bit_quant_type", "quant_type", "bnb_4bit_quant_storage"] {
        leaves.pass(path);
    }
}

/// Quantization constants of 4-bit blocks are quantized once more, which these trainers request from bitsandbytes by
/// default: `llamafactory/hparams/model_args.py:double_quantization`,
/// `swift/arguments/base_args/quant_args.py:bnb_4bit_use_double_quant`, `axolotl/loaders/model.py`
/// (`bnb_config_kwargs` take precedence).
fn double(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let path = "bnb_config_kwargs.bnb_4bit_use_double_quant";
    if let Some(leaf) = leaves.get(path).filter(|_| dialect == Dialect::Axolotl) {
        leaves.switch(Field::DoubleQuantization, leaf.flag() != Some(false), leaf);
    }
    let four = matches!(leaves.reading.value(Field::BaseQuantization), Some("nf4" | "fp4"));
    // `axolotl/loaders/model.py:_set_quantization_config` quantizes to 4 bits for `adapter: qlora` alone. Releases of
    // before transformers 5 passed `load_in_4bit` on, for bitsandbytes' own fp4.
    if let Some(leaf) = leaves.yes("load_in_4bit").filter(|_| dialect == Dialect::Axolotl)
        && leaves.text("adapter") == Some("lora")
    {
        let what =
            "4 bits under `adapter: lora`, which axolotl's releases read differently (`qlora` quantizes)";
        let item = NotModelled::new("load_in_4bit", &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    if four && matches!(dialect, Dialect::LlamaFactory | Dialect::Swift | Dialect::Axolotl) {
        let whose = format!("default of {}", dialect.name());
        leaves.state(Field::DoubleQuantization, "true", Origin::Default, &whose);
    }
}

fn targets(leaves: &mut Leaves<'_>) {
    if let Some(leaf) =
        leaves.first(&["lora_target_modules", "lora_target", "target_modules", "lora_modules"])
    {
        // Lists, and names separated by commas or blanks; `all` in LLaMA-Factory means every linear layer except the
        // output layer, by name (`model/model_utils/misc.py:find_all_linear_modules`).
        let all = matches!(leaf.value.as_str(), "all" | "all-linear" | "[all-linear]");
        if leaf.value == "all" {
            // PEFT's own keyword is different: a program that accepts this one lists the names.
            leaves.state(Field::LoraByNames, "true", Origin::Derived, "PEFT does not know `all`");
        }
        match of_pattern(&leaf.value) {
            Some(names) => {
                let note = "of a pattern over every layer";
                leaves.say_noted(Field::LoraTargetModules, &names.join(" "), leaf, note);
            }
            None => leaves.say(Field::LoraTargetModules, if all { "all-linear" } else { &leaf.value }, leaf),
        }
    }
    if let Some(leaf) = leaves.yes("lora_target_linear") {
        leaves.say(Field::LoraTargetModules, "all-linear", leaf);
    }
}

/// The names that a pattern over every layer of the decoder matches:
/// `model.layers.[\d]+.(mlp|self_attn).(up|down|q|k)_proj`. `None` for plain names, and for patterns that select
/// layers, match another tower, or are written differently.
pub(super) fn of_pattern(value: &str) -> Option<Vec<String>> {
    /// Names that join modules within a layer in such patterns, apart from FSDP's checkpoint wrapper.
    const MODULES: [&str; 3] = ["mlp", "self_attn", "cross_attn"];
    let plain = value.replace('\\', "").replace("(_checkpoint_wrapped_module.)?", "");
    let (layers, rest) =
        ["layers.[d]+.(", "layers.d+.(", "layers.[0-9]+.("].iter().find_map(|sign| plain.split_once(sign))?;
    let (modules, names) = rest.split_once(").(")?;
    let (names, ending) = names.split_once(')')?;
    let decoder = !layers.contains(['(', '|']) && !layers.contains("vis");
    let known = modules.split('|').all(|module| MODULES.contains(&module));
    (decoder && known && ending == "_proj")
        .then(|| names.split('|').map(|name| format!("{name}_proj")).collect())
}

#[cfg(test)]
mod tests {
    use super::of_pattern;

    #[test]
    fn patterns_over_every_layer_are_names() {
        let names = of_pattern(r"model.language_model.layers.[\d]+.(mlp|self_attn).(up|down|q)_proj");
        assert_eq!(names, Some(vec!["up_proj".to_owned(), "down_proj".to_owned(), "q_proj".to_owned()]));
        let wrapped = r"model.layers.[\d]+.(_checkpoint_wrapped_module.)?(mlp|self_attn).(gate|v)_proj";
        assert_eq!(of_pattern(wrapped), Some(vec!["gate_proj".to_owned(), "v_proj".to_owned()]));
        for other in [
            "q_proj",
            "all-linear",
            r".*\.layers\.(3|7|11)\.self_attn\.(q|k)_proj|.*\.mlp\.(gate|up)_proj",
            r"model.visual.layers.[\d]+.(mlp|self_attn).(up|down)_proj",
            r"(model.layers.\d+.(mlp).(gate|up)_proj|model.projector.linear_[12])",
            r"model.layers.[\d]+.(mlp|mixer).(up|down)_proj",
        ] {
            assert_eq!(of_pattern(other), None, "{other}");
        }
    }
}
