//! A settings file says the same alone and beneath the command that names it: a default which depends on a setting is
//! computed from both.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, SettingValue};
use shardscope_source::{Severity, Source};
use std::collections::BTreeMap;

const FULL: &str = "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: full\n\
    dataset: identity\ntemplate: llama3\noutput_dir: saves\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n\
    learning_rate: 1.0e-5\nbf16: true\n";
const OLD_SFT: &str = "model_name_or_path: mistralai/Mistral-7B-v0.1\ntorch_dtype: bfloat16\nbf16: true\nlearning_rate: 2.0e-05\n\
    gradient_checkpointing: true\nmax_seq_length: 2048\noutput_dir: o\nper_device_train_batch_size: 16\n";
const TRAINER: &str = "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nmodel_name_or_path: Qwen/Qwen2.5-7B-Instruct\n\
    output_dir: o\nnum_train_epochs: 1\nbf16: true\nmax_seq_length: 2048\n";
const SWIFT: &str = "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: full\ndataset: d\nper_device_train_batch_size: 1\n\
    learning_rate: 1.0e-5\nmax_length: 4096\ntorch_dtype: bfloat16\n";
const AXOLOTL: &str = "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 2048\nmicro_batch_size: 4\nadapter: lora\nlora_r: 16\n\
    lora_alpha: 32\nlora_target_linear: true\nbf16: true\n";

/// A case of the formats' tests.
fn case(file: &str) -> String {
    let path = format!("{}/../../tests/data/formats/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let overrides = [("world_size".to_owned(), "8".to_owned())];
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

/// Every setting but the machines, with its value.
fn settings(resolution: &Resolution) -> BTreeMap<&'static str, String> {
    let machines = [Field::WorldSize, Field::NumNodes, Field::GpusPerNode];
    let stated = resolution
        .settings
        .iter()
        .filter(|setting| setting.value != SettingValue::Null && !machines.contains(&setting.field));
    stated.map(|setting| (setting.name(), setting.value.written())).collect()
}

#[test]
fn a_file_says_the_same_beneath_its_command() {
    let cases: [(&str, String, &str); 30] = [
        ("c.yaml", FULL.into(), "FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train c.yaml"),
        ("c.yaml", FULL.into(), "torchrun --nproc_per_node 8 src/train.py c.yaml"),
        ("c.yaml", FULL.into(), "torchrun --nproc_per_node 8 src/llamafactory/launcher.py c.yaml"),
        ("c.yaml", FULL.into(), "llamafactory-cli train c.yaml learning_rate=1e-5 logging_steps=1"),
        ("c.yaml", case("llamafactory/sft.yaml"), "FORCE_TORCHRUN=1 llamafactory-cli train c.yaml"),
        ("c.yaml", OLD_SFT.into(), "trl sft --config c.yaml"),
        ("c.yaml", OLD_SFT.into(), "accelerate launch --num_processes 8 trl/scripts/sft.py --config c.yaml"),
        ("c.yaml", OLD_SFT.into(), "accelerate launch --num_processes 8 scripts/run_sft.py --config c.yaml"),
        ("c.yaml", OLD_SFT.into(), "accelerate launch --num_processes 8 scripts/run_sft.py c.yaml"),
        ("c.yaml", case("trl/sft.yaml"), "trl sft --config c.yaml"),
        ("c.yaml", TRAINER.into(), "accelerate launch --num_processes 8 train.py c.yaml"),
        (
            "c.yaml",
            TRAINER.into(),
            "torchrun --nproc_per_node 8 train.py c.yaml --num_train_epochs 3 --save_steps 5",
        ),
        ("c.yaml", SWIFT.into(), "NPROC_PER_NODE=8 swift sft --config c.yaml"),
        ("c.yaml", SWIFT.into(), "NPROC_PER_NODE=8 swift sft c.yaml"),
        ("c.yml", AXOLOTL.into(), "axolotl train c.yml"),
        ("c.yml", AXOLOTL.into(), "accelerate launch --num_processes 8 -m axolotl.cli.train c.yml"),
        ("c.yml", case("axolotl/config.yml"), "axolotl train c.yml"),
        (
            "c.yaml",
            case("torchtune/lora.yaml"),
            "tune run --nproc_per_node 8 lora_finetune_distributed --config c.yaml",
        ),
        ("c.yaml", case("litgpt/full.yaml"), "litgpt finetune_full --config c.yaml"),
        (
            "c.yaml",
            case("areal/grpo.yaml"),
            "python3 -m areal.launcher.local examples/math/gsm8k_grpo.py --config c.yaml",
        ),
        ("c.yaml", case("automodel/peft.yaml"), "automodel finetune llm -c c.yaml"),
        ("c.yaml", case("easy_r1/config.yaml"), "python3 -m verl.trainer.main config=c.yaml"),
        ("c.yaml", case("levanter/llama.yaml"), "python -m levanter.main.train_lm --config_path c.yaml"),
        (
            "c.yaml",
            case("lingua/lingua.yaml"),
            "torchrun --nproc-per-node 8 -m apps.main.train config=c.yaml",
        ),
        ("c.yml", case("maxtext/train.yml"), "python3 -m MaxText.train c.yml run_name=a"),
        ("c.yaml", case("nemo_rl/grpo.yaml"), "uv run examples/run_grpo_math.py --config c.yaml"),
        ("c.yaml", case("oumi/train.yaml"), "oumi distributed torchrun -m oumi train -c c.yaml"),
        ("c.toml", case("prime_rl/sft.toml"), "uv run sft @ c.toml"),
        ("c.yaml", case("olmo/olmo.yaml"), "torchrun --nproc_per_node=8 scripts/train.py c.yaml"),
        ("c.yaml", case("llmfoundry/mpt.yaml"), "composer train/train.py c.yaml save_folder=a"),
    ];
    for (name, file, command) in &cases {
        let alone = settings(&resolved(&[(name, file)]));
        let beneath = settings(&resolved(&[(name, file), ("launch.sh", command)]));
        assert_eq!(beneath, alone, "{command}");
    }
}

#[test]
fn words_override_the_file_that_they_name() {
    let micro = Field::MicroBatchSize;
    for (name, file, command, field, value) in [
        (
            "c.yaml",
            FULL.into(),
            "llamafactory-cli train c.yaml finetuning_type=lora",
            Field::ParamsDtype,
            "bf16",
        ),
        ("c.yaml", FULL.into(), "llamafactory-cli train c.yaml per_device_train_batch_size=3", micro, "3"),
        (
            "c.yaml",
            TRAINER.into(),
            "torchrun --nproc_per_node 8 train.py c.yaml --per_device_train_batch_size 3",
            micro,
            "3",
        ),
        ("c.yaml", OLD_SFT.into(), "trl dpo --config c.yaml", Field::TrainingObjective, "dpo"),
        ("c.yml", AXOLOTL.into(), "axolotl train c.yml --micro-batch-size 3", micro, "3"),
        (
            "c.yaml",
            case("litgpt/full.yaml"),
            "litgpt finetune_full --config c.yaml --train.micro_batch_size 3",
            micro,
            "3",
        ),
        (
            "c.yaml",
            case("lingua/lingua.yaml"),
            "torchrun -m apps.main.train config=c.yaml data.batch_size=3",
            micro,
            "3",
        ),
        (
            "c.yml",
            case("maxtext/train.yml"),
            "python3 -m MaxText.train c.yml run_name=a per_device_batch_size=3",
            micro,
            "3",
        ),
        (
            "c.yaml",
            case("automodel/peft.yaml"),
            "automodel finetune llm -c c.yaml --step_scheduler.local_batch_size 3",
            micro,
            "3",
        ),
        (
            "c.toml",
            case("prime_rl/sft.toml"),
            "uv run sft @ c.toml --data.batch_size 48 --data.micro_batch_size 3",
            micro,
            "3",
        ),
        (
            "c.yaml",
            case("nemo_rl/grpo.yaml"),
            "uv run run_grpo.py --config c.yaml policy.max_total_sequence_length=2048",
            Field::SeqLength,
            "2048",
        ),
        (
            "c.yaml",
            case("oumi/train.yaml"),
            "oumi train -c c.yaml --training.per_device_train_batch_size 3",
            micro,
            "3",
        ),
        (
            "c.yaml",
            case("llmfoundry/mpt.yaml"),
            "composer train/train.py c.yaml max_seq_len=512",
            Field::SeqLength,
            "512",
        ),
    ] {
        let resolution = resolved(&[(name, &file), ("launch.sh", command)]);
        let found = resolution.setting(field).map(|setting| setting.value.written());
        assert_eq!(found.as_deref(), Some(value), "{command}");
    }
}

/// A file of too few keys to tell whose they are, and one that the script writes, are their program's.
#[test]
fn a_file_is_of_the_program_that_takes_it() {
    let few = "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: full\ndataset: d\nmax_length: 4096\ntorch_dtype: bfloat16\n";
    let read = resolved(&[("c.yaml", few), ("run.sh", "NPROC_PER_NODE=8 swift sft --config c.yaml\n")]);
    let value = |read: &Resolution, field| {
        read.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
    };
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let fields = [Field::TrainType, Field::SeqLength, Field::HiddenSize];
    assert_eq!(fields.map(|field| value(&read, field)), ["full", "4096", "3584"]);
    assert!(!read.diagnostics.iter().any(|said| said.severity == Severity::Error), "{:?}", read.diagnostics);

    let script = format!(
        "cat > c.yaml <<EOF\n{FULL}EOF\nFORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train c.yaml\n"
    );
    let alone = settings(&resolved(&[("c.yaml", FULL)]));
    assert_eq!(settings(&resolved(&[("run.sh", &script)])), alone);
    // What it leaves to a variable is not known.
    let open = script.replace("finetuning_type: full", "finetuning_type: $TYPE");
    assert!(resolved(&[("run.sh", &open)]).plan.is_none());
}
