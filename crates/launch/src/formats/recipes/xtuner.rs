//! Configurations of XTuner before its version 1: Python whose top-level names are literals and `dict(type=…, …)`, which mmengine
//! reads. Names and defaults: `xtuner/tools/train.py`, `xtuner/model/sft.py`, `xtuner/configs`.

use crate::formats::leaves::{Leaf, Leaves, Scalars};
use crate::formats::reader::{Claim, Command, Reader};
use crate::formats::trainer::{Dialect, read_scalars, spread, words};
use crate::{Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::{Field, Software};
use shardscope_python::expression::{Argument, Expression, expression};
use shardscope_python::statements::statements;
use shardscope_source::Span;
use std::collections::HashMap;

/// Assignments at the top of a configuration, and keys of one `dict`, that are followed at most; XTuner's own have some 40 names.
const MOST: usize = 512;
/// Calls inside calls that are followed.
const DEEPEST: u32 = 8;

/// Keys of the configuration, each with the one that transformers' Trainer has for the same.
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

/// Configurations of XTuner before its version 1. Their texts are programs, and so not offered as settings.
#[derive(Debug)]
pub(crate) struct Xtuner;

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

    /// The line that starts it says which file DeepSpeed reads, and nothing of the training.
    fn read_words(&self, words: &[crate::Argument]) -> Reading {
        let scalars = words::leaves(words);
        let mut leaves = Leaves::over(&scalars);
        spread(&mut leaves);
        for path in ["launcher", "work_dir", "seed", "resume"] {
            leaves.pass(path);
        }
        // It overrides any key of the configuration.
        if let Some(leaf) = leaves.get("cfg_options") {
            let what = "keys of the configuration that the line overrides";
            let item = NotModelled::new("cfg_options", &leaf.value, Effect::Model, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        // Taken back where the configuration is among the texts.
        let what = "a program that takes its settings from a configuration; paste that with the command";
        leaves.reading.not_modelled.push(NotModelled::new("program", "xtuner", Effect::Model, what));
        leaves.reading.software = Some((Software::Xtuner, "a command of XTuner".to_owned()));
        leaves.finish("a command of XTuner")
    }
}

/// A value with where it stands, by its dotted path.
type Values = Vec<(String, String, Span)>;

/// Reads a configuration; none where the program is none of XTuner's.
pub(crate) fn read_xtuner(text: &str, base: u32) -> Option<Reading> {
    if !text.contains("xtuner") {
        return None;
    }
    if text.contains("xtuner.v1") {
        let what = "XTuner's version 1, with a trainer and modules of its own";
        let item = NotModelled::new("program", "xtuner.v1", Effect::Memory, what);
        return Some(Reading { not_modelled: vec![item], ..Reading::default() });
    }
    let (values, cut) = values(text, base);
    let get = |path: &str| values.iter().find(|(known, _, _)| known == path);
    let (_, kind, place) = get("model.type")?;
    let kind = kind.rsplit('.').next().unwrap_or(kind);
    // `framework = "huggingface"` hands the model to transformers' Trainer, whose arguments it has.
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
            // `find_all_linear_names`: all of them but the output layer.
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
    if cut {
        let what = "a configuration with more assignments than are followed";
        lack("program", "", None, Effect::Model, what);
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

/// What the line decides that starts the configuration (`xtuner train CONFIG --deepspeed deepspeed_zero2`): which of XTuner's files
/// DeepSpeed reads, which all leave the format to what the accelerator has (`auto_dtype_of_deepspeed_config`).
fn engine(reading: &mut Reading) {
    let why = "XTuner's files for DeepSpeed take bf16 where the accelerator has it";
    for (field, value) in
        [(Field::DataParallelEngine, "deepspeed"), (Field::Bf16, "true"), (Field::ParamsDtype, "bf16")]
    {
        reading.take(Found::new(field, value, Origin::Default).note(why));
    }
    let why = "`_prepare_for_flash_attn`, where flash-attn is installed";
    reading.take(Found::new(Field::AttnImplementation, "flash_attention_2", Origin::Default).note(why));
    let mut stage = Found::new(Field::ZeroStage, String::new(), Origin::Script);
    stage.hole = Some("--deepspeed of the line that starts it".to_owned());
    reading.take(stage);
    reading.questions.push(Question {
        name: Field::ZeroStage.name().to_owned(),
        prompt: "Which DeepSpeed config does the launch command name: deepspeed_zero1, 2 or 3?".to_owned(),
        choices: ["1", "2", "3"].map(str::to_owned).to_vec(),
        proposal: Some("2".to_owned()),
    });
}

/// Every literal by its path; names stand for what was assigned to them before. Whether there are more than are followed.
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

#[cfg(test)]
mod tests {
    use super::read_xtuner;
    use crate::{Request, read};
    use shardscope_bash::Environment;
    use shardscope_plan::{Field, Software};
    use shardscope_source::Source;

    /// After `xtuner/configs/llama/llama2_7b/llama2_7b_qlora_alpaca_e3.py`, without data, schedules and hooks.
    const QLORA: &str = r#"
from xtuner.model import SupervisedFinetune
pretrained_model_name_or_path = "meta-llama/Llama-2-7b-hf"
max_length = 2048
pack_to_max_length = True
sequence_parallel_size = 2
batch_size = 1  # per_device
accumulative_counts = 16
accumulative_counts *= sequence_parallel_size
optim_type = PagedAdamW32bit
model = dict(
    type=SupervisedFinetune,
    llm=dict(
        type=AutoModelForCausalLM.from_pretrained,
        pretrained_model_name_or_path=pretrained_model_name_or_path,
        torch_dtype=torch.float16,
        quantization_config=dict(load_in_4bit=True, load_in_8bit=False, bnb_4bit_use_double_quant=True),
    ),
    lora=dict(type=LoraConfig, r=64, lora_alpha=16, lora_dropout=0.1, bias="none"),
)
train_dataset = dict(type=process_hf_dataset, max_length=max_length)
train_dataloader = dict(batch_size=batch_size, num_workers=0)
optim_wrapper = dict(
    type=AmpOptimWrapper,
    optimizer=dict(type=optim_type, lr=2e-4),
    accumulative_counts=accumulative_counts,
    dtype="float16",
)
"#;

    #[test]
    fn a_configuration_is_read_by_its_literals() {
        let reading = read_xtuner(QLORA, 0).expect("a configuration");
        let said = |field| reading.value(field).unwrap_or("");
        assert_eq!((said(Field::NumLayers), said(Field::SeqLength)), ("32", "2048"));
        assert_eq!((said(Field::MicroBatchSize), said(Field::NumMicroBatches)), ("1", "32"));
        assert_eq!((said(Field::TrainType), said(Field::BaseQuantization)), ("qlora", "nf4"));
        assert_eq!((said(Field::DoubleQuantization), said(Field::LoraRank)), ("true", "64"));
        assert_eq!((said(Field::LoraTargetModules), said(Field::LoraDropout)), ("all-linear", "0.1"));
        assert_eq!((said(Field::Optimizer), said(Field::ContextParallelSize)), ("paged_adamw_32bit", "2"));
        assert_eq!((said(Field::GradientCheckpointing), said(Field::PaddingMask)), ("true", "false"));
        assert!(reading.not_modelled.is_empty(), "{:?}", reading.not_modelled);
        assert_eq!(reading.software.as_ref().map(|(software, _)| *software), Some(Software::Xtuner));
        // The line that starts it names the file for DeepSpeed.
        let asked: Vec<&str> = reading.questions.iter().map(|question| question.name.as_str()).collect();
        assert_eq!(asked, ["zero_stage"]);
    }

    #[test]
    fn the_line_that_starts_it_names_machines_and_deepspeeds_file() {
        let line = "NPROC_PER_NODE=8 xtuner train qlora.py --deepspeed deepspeed_zero2\n";
        let resolved = |files: &[(&str, &str)]| {
            let source = Source::from_files(files.iter().copied());
            read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
        };
        let both = resolved(&[("run.sh", line), ("qlora.py", QLORA)]);
        let plan = both.plan.as_ref().expect("a plan");
        assert_eq!((plan.cluster().gpus(), plan.recipe().software), (8, Software::Xtuner));
        assert_eq!(both.questions, []);
        // Alone it says nothing of what is trained.
        let alone = resolved(&[("run.sh", line)]);
        let names: Vec<&str> = alone.not_modelled.iter().map(|item| item.name.as_str()).collect();
        assert_eq!((alone.plan.is_some(), names), (false, vec!["program"]));
    }

    #[test]
    fn what_is_no_supervised_tuning_stops_by_its_name() {
        let stopped = |text: &str| {
            let reading = read_xtuner(text, 0).expect("a configuration");
            reading.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(stopped(&QLORA.replace("type=SupervisedFinetune", "type=DPO")), ["model.type"]);
        assert_eq!(stopped(&QLORA.replace("type=SupervisedFinetune", "type=LLaVAModel")), ["model.type"]);
        assert_eq!(
            stopped("from xtuner.v1.train import TrainerConfig\ntrainer = TrainerConfig()\n"),
            ["program"]
        );
        let full = QLORA
            .replace("lora=dict(type=LoraConfig, r=64, lora_alpha=16, lora_dropout=0.1, bias=\"none\"),", "");
        let full = full.replace("load_in_4bit=True", "load_in_4bit=False");
        assert_eq!(read_xtuner(&full, 0).expect("a configuration").value(Field::TrainType), Some("full"));
        assert!(read_xtuner("import torch\nmodel = dict(type=SupervisedFinetune)\n", 0).is_none());
        for broken in ["xtuner = dict(", "model = dict(type=xtuner, model=dict(model=(((", "model *= xtuner"]
        {
            let _ = read_xtuner(broken, 0);
        }
    }
}
