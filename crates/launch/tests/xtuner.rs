//! XTuner configurations, on their own and with the command line that starts them.

#![allow(clippy::expect_used, reason = "a test that cannot go on should stop with the value at hand")]

use shardscope_bash::Environment;
use shardscope_launch::formats::recipes::read_xtuner;
use shardscope_launch::{Request, read};
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
    // The command line that starts it names the DeepSpeed file.
    let asked: Vec<&str> = reading.questions.iter().map(|question| question.name()).collect();
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
    // On its own it says nothing about what is trained.
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
    for broken in ["xtuner = dict(", "model = dict(type=xtuner, model=dict(model=(((", "model *= xtuner"] {
        let _ = read_xtuner(broken, 0);
    }
}
