//! Configurations of XTuner before version 1: Python files whose top-level names are literals and `dict(type=…, …)`,
//! read by mmengine. Names and defaults: `xtuner/tools/train.py`, `xtuner/model/sft.py`, `xtuner/configs`.

use crate::leaves::{Leaf, Leaves, Scalars};
use crate::reader::{Claim, Command, Reader};
use crate::trainer::{Dialect, read_scalars, spread, words};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::{Field, Software};
use shardscope_python::expression::{Argument, Expression, expression};
use shardscope_python::statements::statements;
use shardscope_source::Span;
use std::collections::HashMap;

/// Most top-level assignments of a configuration, and most keys of one `dict`, that are followed;
/// XTuner's own have some 40 names.
const MOST: usize = 512;
/// Deepest nesting of calls that is followed.
const DEEPEST: u32 = 8;

/// Keys of the configuration, each with the corresponding key of transformers' Trainer.
const SAME: [(&str, &str); 11] = [
    ("model.llm.pretrained_model_name_or_path", "model_name_or_path"),
    ("train_dataloader.batch_size", "per_device_train_batch_size"),
    ("optim_wrapper.accumulative_counts", "gradient_accumulation_steps"),
    ("sequence_parallel_size", "sequence_parallel_size"),
    ("model.lora.r", "lora_r"),
    ("model.lora.lora_alpha", "lora_alpha"),
    ("model.lora.lora_dropout", "lora_dropout"),
    ("model.lora.target_modules", "target_modules"),
    ("model.llm.quantization_config.load_in_4bit", "load_in_4bit"),
    ("model.llm.quantization_config.load_in_8bit", "load_in_8bit"),
    ("model.llm.quantization_config.bnb_4bit_use_double_quant", "bnb_4bit_use_double_quant"),
];

/// Configurations of XTuner before version 1. Their texts are programs, so they are not offered as settings.
#[derive(Debug)]
pub struct Xtuner;

impl Reader for Xtuner {
    fn name(&self) -> &'static str {
        "a configuration of XTuner"
    }

    fn about(&self) -> &'static str {
        "XTuner before its version 1: supervised fine-tuning, with LoRA and QLoRA, from the literals of its Python configurations"
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        (shardscope_bash::base_name(command.program) == "xtuner").then_some(Claim::Certain)
    }

    /// The command states which file DeepSpeed reads, and nothing else about the training.
    fn read_words(&self, words: &[crate::Argument]) -> Reading {
        let scalars = words::leaves(words);
        let mut leaves = Leaves::over(&scalars);
        spread(&mut leaves, None);
        for path in ["launcher", "work_dir", "seed", "resume"] {
            leaves.pass(path);
        }
        // It overrides any key of the configuration.
        if let Some(leaf) = leaves.get("cfg_options") {
            let what = "keys of the configuration that the line overrides";
            let item = NotModelled::new("cfg_options", &leaf.value, Effect::Model, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        // Removed if the configuration is among the texts.
        let what = "a program that takes its settings from a configuration; paste that with the command";
        leaves.reading.not_modelled.push(NotModelled::of_program("xtuner", Effect::Model, what));
        leaves.reading.software = Some((Software::Xtuner, "a command of XTuner".to_owned()));
        leaves.finish("a command of XTuner")
    }
}

/// Dotted path, value and position.
type Values = Vec<(String, String, Span)>;

/// Reads a configuration; `None` if the program is not one of XTuner's.
pub fn read_xtuner(text: &str, base: u32) -> Option<Reading> {
    if !text.contains("xtuner") {
        return None;
    }
    if text.contains("xtuner.v1") {
        let what = "XTuner's version 1, with a trainer and modules of its own";
        let item = NotModelled::of_program("xtuner.v1", Effect::Memory, what);
        return Some(Reading { not_modelled: vec![item], ..Reading::default() });
    }
    let (values, cut) = values(text, base);
    let get = |path: &str| values.iter().find(|(known, _, _)| known == path);
    let (_, kind, place) = get("model.type")?;
    let kind = kind.rsplit('.').next().unwrap_or(kind);
    // `framework = "huggingface"` passes the model to transformers' Trainer, whose arguments the configuration has.
    let own_loop = get("optim_wrapper.optimizer.type").is_some();
    let mut leaves = Vec::new();
    let mut state = |path: &str, value: &str, span: Option<Span>| {
        leaves.push(Leaf { path: path.to_owned(), value: value.to_owned(), span, ..Leaf::default() });
    };
    for (path, key) in SAME {
        if let Some((_, value, span)) = get(path) {
            state(key, value, Some(*span));
        }
    }
    if let Some((_, value, span)) = get("max_length").or_else(|| get("train_dataset.max_length")) {
        state("max_length", value, Some(*span));
    }
    if let Some((_, _, span)) = get("model.lora.type") {
        state("use_peft", "true", Some(*span));
        if get("model.lora.target_modules").is_none() {
            // `find_all_linear_names`: all linear layers except the output layer.
            state("target_modules", "all-linear", Some(*span));
        }
    }
    let off = get("model.use_activation_checkpointing").is_some_and(|(_, value, _)| value == "false");
    state("gradient_checkpointing", if off { "false" } else { "true" }, None);
    if let Some((_, value, span)) = get("optim_wrapper.optimizer.type") {
        let name = value.rsplit('.').next().unwrap_or(value);
        let known =
            [("AdamW", "adamw_torch"), ("PagedAdamW32bit", "paged_adamw_32bit"), ("AdamW8bit", "adamw_8bit")];
        let name = known.iter().find(|(class, _)| *class == name).map_or(name, |(_, optimizer)| optimizer);
        state("optim", name, Some(*span));
    }
    let scalars = Scalars::from_leaves(leaves);
    let mut reading = read_scalars(Dialect::Transformers, &scalars);
    if cut {
        let what = "a configuration with more assignments than are followed";
        reading.not_modelled.push(NotModelled::of_program("", Effect::Model, what));
    }
    let mut lack = |name: &str, value: &str, span: Option<Span>, effect, what: &str| {
        reading.not_modelled.push(NotModelled::new(name, value, effect, what).at_some(span));
    };
    match kind {
        "SupervisedFinetune" => {}
        "LLaVAModel" | "InternVL_V1_5" => {
            let what = "a vision model in addition to the decoder (XTuner)";
            lack("model.type", kind, Some(*place), Effect::Model, what);
        }
        _ => {
            let what = "XTuner training other than supervised fine-tuning, and the models that it holds";
            lack("model.type", kind, Some(*place), Effect::Memory, what);
        }
    }
    if !own_loop {
        let what = "a training loop other than XTuner's own";
        lack("optim_wrapper", "", Some(*place), Effect::Memory, what);
    }
    if let Some((path, value, span)) =
        get("model.llm.attn_implementation").filter(|(_, value, _)| value != "flash_attention_2")
    {
        lack(path, value, Some(*span), Effect::Memory, "this attention under XTuner");
    }
    engine(&mut reading);
    if get("model.lora.type").is_some() && get("model.lora.target_modules").is_none() {
        let why = "XTuner lists linear layers by name (find_all_linear_names)";
        reading.take(Found::new(Field::LoraByNames, "true", Origin::Derived).note(why));
    }
    if get("model.lora.type").is_none() {
        let found = Found::new(Field::TrainType, "full", Origin::Derived);
        reading.take(found.note("without `lora` everything trains"));
    }
    let packed = get("pack_to_max_length").is_some_and(|(_, value, _)| value == "true");
    let alone = get("train_dataloader.batch_size").is_some_and(|(_, value, _)| value == "1");
    if packed || alone {
        let why = "packs are full, and a sequence alone is not padded";
        reading.take(Found::new(Field::PaddingMask, "false", Origin::Derived).note(why));
    }
    reading.software = Some((Software::Xtuner, "a configuration of XTuner".to_owned()));
    Some(reading)
}

/// The command that starts the configuration (`xtuner train CONFIG --deepspeed deepspeed_zero2`) selects which of
/// XTuner's files DeepSpeed reads; all of them choose the format by what the accelerator supports
/// (`auto_dtype_of_deepspeed_config`).
fn engine(reading: &mut Reading) {
    let why = "XTuner's files for DeepSpeed take bf16 where the accelerator has it";
    for (field, value) in
        [(Field::DataParallelEngine, "deepspeed"), (Field::Bf16, "true"), (Field::ParamsDtype, "bf16")]
    {
        reading.take(Found::new(field, value, Origin::Default).note(why));
    }
    let why = "`_prepare_for_flash_attn`, where flash-attn is installed";
    reading.take(Found::new(Field::AttnImplementation, "flash_attention_2", Origin::Default).note(why));
    // All of them overlap what stages 1 and 2 reduce (`xtuner/configs/deepspeed/deepspeed_zero2.json`).
    let why = "XTuner's files for DeepSpeed set overlap_comm";
    reading.take(Found::new(Field::ReduceBuckets, "2", Origin::Default).note(why));
    let mut stage = Found::new(Field::ZeroStage, String::new(), Origin::Script);
    stage.hole = Some("--deepspeed of the line that starts it".to_owned());
    reading.take(stage);
    reading.questions.push(Question {
        asks: Asked::Setting(Field::ZeroStage),
        prompt: "Which DeepSpeed config does the launch command name: deepspeed_zero1, 2 or 3 (0: none)?"
            .to_owned(),
        choices: ["0", "1", "2", "3"].map(str::to_owned).to_vec(),
        proposal: Some("2".to_owned()),
    });
}

/// Every literal with its path; names are replaced by their earlier assignments. Also returns whether
/// there are more than are followed.
fn values(text: &str, base: u32) -> (Values, bool) {
    let mut names: HashMap<String, Expression> = HashMap::new();
    let mut out: Values = Vec::new();
    let mut assigned = 0;
    for statement in statements(text).iter().filter(|statement| statement.indent == 0) {
        let Some((target, value)) = statement.text.split_once('=') else { continue };
        let (name, times) = match target.trim().strip_suffix('*') {
            Some(name) => (name.trim(), true),
            None => (target.trim(), false),
        };
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plain {
            continue;
        }
        assigned += 1;
        if assigned > MOST || out.len() >= MOST {
            return (out, true);
        }
        let mut value = resolved(&expression(value.trim()), &names);
        if times {
            value = match (names.get(name), &value) {
                (Some(Expression::Number(left)), Expression::Number(right)) => {
                    expression(&format!("{left} * {right}"))
                }
                _ => Expression::Unknown,
            };
        }
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(base);
        let span = Span::new(place(statement.start), place(statement.start + statement.text.len()));
        out.retain(|(path, _, _)| {
            path != name && !path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        });
        flatten(name, &value, span, 0, &names, &mut out);
        names.insert(name.to_owned(), value);
    }
    (out, false)
}

fn resolved(value: &Expression, names: &HashMap<String, Expression>) -> Expression {
    match value {
        Expression::Name(name) => names.get(name).unwrap_or(value).clone(),
        other => other.clone(),
    }
}

fn flatten(
    path: &str,
    value: &Expression,
    span: Span,
    depth: u32,
    names: &HashMap<String, Expression>,
    out: &mut Values,
) {
    if out.len() >= MOST || depth == DEEPEST {
        return;
    }
    let mut put = |text: String| out.push((path.to_owned(), text, span));
    match resolved(value, names) {
        Expression::Text(text) | Expression::Number(text) => put(text),
        Expression::Name(name) => match name.as_str() {
            "None" => {}
            "True" => put("true".to_owned()),
            "False" => put("false".to_owned()),
            _ => put(name),
        },
        Expression::List(items) => {
            let words: Vec<String> = items
                .iter()
                .filter_map(|item| match item {
                    Expression::Text(text) => Some(text.clone()),
                    _ => None,
                })
                .collect();
            if !words.is_empty() {
                put(format!("[{}]", words.join(", ")));
            }
        }
        Expression::Call(name, arguments) if name == "dict" => {
            for (keyword, value) in &arguments as &[Argument] {
                if let Some(keyword) = keyword {
                    flatten(&format!("{path}.{keyword}"), value, span, depth + 1, names, out);
                }
            }
        }
        _ => {}
    }
}
