//! Commands whose settings are in a given file: a pasted one, or one that a cell of the notebook writes.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Source};

/// huggingface/alignment-handbook `recipes/zephyr-7b-beta/sft/config_full.yaml`, shortened.
const SETTINGS: &str = "model_name_or_path: mistralai/Mistral-7B-v0.1\ntorch_dtype: bfloat16\nbf16: true\nmax_seq_length: 2048\n\
    gradient_accumulation_steps: 1\ngradient_checkpointing: true\nper_device_train_batch_size: 16\nlearning_rate: 2.0e-05\n";

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn asked(resolution: &Resolution) -> Vec<&str> {
    resolution.questions.iter().map(|question| question.name()).collect()
}

fn value(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

/// Once the file is given, nothing else is asked for, whichever way the command names it.
#[test]
fn a_command_and_its_file_are_one_training() {
    for named in
        ["--config sft.yaml", "--config=configs/sft.yaml", "configs/sft.yaml", "--recipe_path sft.yaml"]
    {
        let script = format!("accelerate launch --num_processes 8 scripts/run_sft.py {named}\n");
        let alone = resolved(&[("run.sh", &script)]);
        let lacks = alone.diagnostics.iter().any(|said| said.code == Code::MissingFile);
        assert!(lacks && alone.plan.is_none(), "{named}: {:?}", alone.diagnostics);
        let both = resolved(&[("run.sh", &script), ("sft.yaml", SETTINGS)]);
        assert!(both.plan.is_some(), "{named}: {:?}", both.diagnostics);
        assert_eq!((asked(&both), both.not_modelled.len()), (Vec::new(), 0), "{named}");
        // The option that names the file is known as well; otherwise it would mark the verdict.
        assert_eq!(value(&both, Field::NotRead), "", "{named}");
        assert_eq!(
            (value(&both, Field::WorldSize), value(&both, Field::SeqLength)),
            ("8".into(), "2048".into())
        );
    }
    // Other words are read as well, and override those of the file.
    let words =
        "accelerate launch --num_processes 8 scripts/run_sft.py --config sft.yaml --max_length 4096\n";
    let both = resolved(&[("run.sh", words), ("sft.yaml", SETTINGS)]);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
    assert_eq!(
        (value(&both, Field::SeqLength), value(&both, Field::NotRead)),
        ("4096".into(), String::new())
    );
}

/// A file that says nothing about a training leaves it as open as before.
#[test]
fn a_file_that_is_no_training_says_no_more() {
    let script = "torchrun --nproc_per_node 8 train.py --config other.yaml\n";
    let other = resolved(&[("run.sh", script), ("other.yaml", "namespace: a\nimage: b\nstorage: c\n")]);
    assert!(other.plan.is_none());
    assert!(other.not_modelled.iter().any(|item| item.name == "program"), "{:?}", other.not_modelled);
    let engine = "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 1}";
    let script = script.replace("other.yaml", "ds.json");
    let other = resolved(&[("run.sh", &script), ("ds.json", engine)]);
    assert!(other.not_modelled.iter().any(|item| item.name == "program"), "{:?}", other.not_modelled);
}

/// The sharding of the model is in accelerate's own file, which is asked for if it is missing.
#[test]
fn accelerates_file_beside_the_settings_is_asked_for() {
    let script = |file: &str| {
        format!(
            "accelerate launch --config_file accelerate_configs/{file} --num_processes 8 run_sft.py --config sft.yaml\n"
        )
    };
    let proposed = |file: &str| {
        let read = resolved(&[("run.sh", &script(file)), ("sft.yaml", SETTINGS)]);
        assert_eq!(asked(&read), ["zero_stage"], "{file}");
        (read.questions[0].proposal.clone(), value(&read, Field::DataParallelEngine))
    };
    assert_eq!(proposed("zero3.yaml"), (Some("3".to_owned()), "deepspeed".to_owned()));
    // accelerate's version is 1 unless its file says 2, which public files that do say in their names.
    assert_eq!(proposed("fsdp.yaml"), (Some("3".to_owned()), "fsdp1".to_owned()));
    assert_eq!(proposed("fsdp2.yaml"), (Some("3".to_owned()), "fsdp2".to_owned()));
    assert_eq!(proposed("multi_gpu.yaml"), (None, String::new()));
    let file = "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 2\n";
    let all = resolved(&[("run.sh", &script("zero3.yaml")), ("sft.yaml", SETTINGS), ("zero3.yaml", file)]);
    assert!(all.plan.is_some() && asked(&all).is_empty(), "{:?}", all.diagnostics);
    assert_eq!(value(&all, Field::ZeroStage), "2");
}

/// oumi-ai/oumi `notebooks/Oumi - Finetuning Tutorial.ipynb`, philschmid's `fsdp-qlora-distributed-llama3.ipynb`: the
/// settings are in a cell.
#[test]
fn a_cell_that_writes_a_file_is_that_file() {
    let notebook = |writes: &str, cells: &str| {
        let settings = SETTINGS.replace('\n', "\\n");
        format!(
            "{{\"cells\": [{{\"cell_type\": \"code\", \"source\": [\"{writes}\\n\", \"{settings}\"]}}, {{\"cell_type\": \"code\", \
             \"source\": \"{cells}\"}}], \"metadata\": {{}}}}"
        )
    };
    let starts = "!accelerate launch --num_processes 4 run_sft.py --config sft.yaml\\n!python evaluate.py --config eval.yaml";
    let text = notebook("%%writefile $folder/sft.yaml", starts);
    let read = resolved(&[("tune.ipynb", &text)]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!((value(&read, Field::WorldSize), value(&read, Field::SeqLength)), ("4".into(), "2048".into()));
    // Its contents have no positions in the notebook.
    let end = u32::try_from(text.len()).unwrap_or(0);
    let places = read.diagnostics.iter().filter_map(|said| said.span);
    assert!(
        places.chain(read.settings.iter().filter_map(|setting| setting.span)).all(|span| span.end <= end)
    );
    // A file that no command reads does not belong to the training.
    for (writes, starts) in [
        ("%%writefile sft.yaml", "print(1)"),
        ("%%writefile sft.yaml", "!accelerate launch --num_processes 4 run_sft.py --config other.yaml"),
        ("%%writefile sft.txt", starts),
    ] {
        let read = resolved(&[("tune.ipynb", &notebook(writes, starts))]);
        assert!(read.plan.is_none(), "{writes} {starts}");
    }
}

/// A program named after preferences or rollouts, with a file that does not mention them: the file does not state what
/// is trained.
#[test]
fn an_objective_that_only_the_programs_name_tells_stops() {
    let stops = |program: &str, more: &str| {
        let script = format!("accelerate launch --num_processes 8 {program} --config sft.yaml\n");
        let read = resolved(&[("run.sh", &script), ("sft.yaml", &format!("{SETTINGS}{more}"))]);
        assert_eq!(
            read.plan.is_none(),
            !read.not_modelled.is_empty() || !read.questions.is_empty(),
            "{program}"
        );
        read.not_modelled.iter().any(|item| item.name == "program")
    };
    for program in ["scripts/run_dpo.py", "train_ppo.py", "reward_modeling.py", "distill.py"] {
        assert!(stops(program, ""), "{program}");
    }
    let pairs = "beta: 0.1\nloss_type: sigmoid\n";
    assert!(!stops("scripts/run_dpo.py", pairs));
    assert!(stops("train_ppo.py", pairs));
    assert!(!stops(
        "scripts/grpo.py",
        "num_generations: 8\nmax_prompt_length: 512\nmax_completion_length: 1024\n"
    ));
    assert!(!stops("scripts/support_sft.py", ""));
}

/// A notebook with a single cell.
fn cell(code: &str) -> String {
    let code = code.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{\"cells\": [{{\"cell_type\": \"code\", \"source\": \"{code}\"}}], \"metadata\": {{}}}}")
}

/// LLaMA-Factory's notebook: the settings are values in the program, which writes them to a file; a second file is for
/// merging weights.
const FACTORY: &str = r#"import json
args = dict(
  stage="sft",
  do_train=True,
  model_name_or_path="unsloth/llama-3-8b-Instruct-bnb-4bit",
  template="llama3",
  finetuning_type="lora",
  lora_target="all",
  per_device_train_batch_size=2,
  gradient_accumulation_steps=4,
  cutoff_len=1024,
  fp16=True,
)
json.dump(args, open("train_llama3.json", "w", encoding="utf-8"), indent=2)
!FORCE_TORCHRUN=1 NPROC_PER_NODE=1 llamafactory-cli train train_llama3.json
args = dict(model_name_or_path="a", template="llama3", finetuning_type="lora", export_dir="b")
json.dump(args, open("merge_llama3.json", "w", encoding="utf-8"), indent=2)
!llamafactory-cli export merge_llama3.json
"#;

/// axolotl's notebook: a YAML text that is loaded and written.
const AXOLOTL: &str = r#"import os, yaml
yaml_string = """
base_model: NousResearch/Meta-Llama-3.1-8B
adapter: lora
lora_r: 32
lora_target_linear: true
sequence_len: 2048
micro_batch_size: 1
gradient_accumulation_steps: 4
bf16: true
"""
yaml_dict = yaml.safe_load(yaml_string)
file_path = 'test_axolotl.yaml'
with open(file_path, 'w') as file:
    yaml.dump(yaml_dict, file)
"#;
const STARTS: &str = "accelerate launch --num_processes 1 -m axolotl.cli.train /content/test_axolotl.yaml";

#[test]
fn settings_that_a_program_writes_are_read_with_its_command() {
    let fields =
        [Field::NumLayers, Field::SeqLength, Field::MicroBatchSize, Field::TrainType, Field::WorldSize];
    let stated = |name: &str, text: &str| {
        let read = resolved(&[(name, text)]);
        assert!(read.not_modelled.is_empty(), "{name}: {:?}", read.not_modelled);
        fields.map(|field| value(&read, field))
    };
    assert_eq!(stated("llama3.ipynb", &cell(FACTORY)), ["32", "1024", "2", "qlora", "1"]);
    let adapters = ["32", "2048", "1", "lora", "1"];
    assert_eq!(stated("axolotl.ipynb", &cell(&format!("{AXOLOTL}!{STARTS}\n"))), adapters);
    assert_eq!(stated("run.py", &format!("{AXOLOTL}os.system(\"{STARTS}\")\n")), adapters);
    // Values that are changed before writing are unknown.
    let changed = AXOLOTL.replace("file_path =", "yaml_dict['adapter'] = chosen\nfile_path =");
    let read = resolved(&[("axolotl.ipynb", &cell(&format!("{changed}!{STARTS}\n")))]);
    assert!(read.diagnostics.iter().any(|said| said.code == Code::MissingFile), "{:?}", read.diagnostics);
}

/// modelscope/ms-swift `examples/train/multi-node/ray/sft.sh`: a file as the only argument.
#[test]
fn a_file_behind_ms_swifts_command_is_its_settings() {
    let script = "NPROC_PER_NODE=4 swift sft examples/sft.yaml\n";
    let alone = resolved(&[("run.sh", script)]);
    assert!(alone.diagnostics.iter().any(|said| said.code == Code::MissingFile), "{:?}", alone.diagnostics);
    let settings = "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\nlearning_rate: 1e-4\nper_device_train_batch_size: 1\n\
        max_length: 2048\ntorch_dtype: bfloat16\n";
    let both = resolved(&[("run.sh", script), ("sft.yaml", settings)]);
    assert!(both.plan.is_some() || !both.questions.is_empty(), "{:?}", both.diagnostics);
    assert!(asked(&both).is_empty(), "{:?}", asked(&both));
    let stated =
        [Field::NumLayers, Field::SeqLength, Field::MicroBatchSize, Field::WorldSize, Field::NumMicroBatches];
    // As many micro-batches as make a batch of 16.
    assert_eq!(stated.map(|field| value(&both, field)), ["28", "2048", "1", "4", "4"]);
}

/// `deepspeed/runtime/engine.py:get_data_types`: only stage 0 sums in fp32 by itself.
#[test]
fn zero_adds_gradients_up_in_the_weights_format() {
    let command = "deepspeed --num_nodes 1 --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 \
        --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 \
        --global-batch-size 64 --vocab-size 32000 --bf16 --deepspeed --deepspeed_config ds.json\n";
    let of = |more: &str| {
        let engine = format!("{{\"train_batch_size\": 64, \"bf16\": {{\"enabled\": true}}{more}}}");
        let resolution = resolved(&[("run.sh", command), ("ds.json", &engine)]);
        assert!(resolution.plan.is_some(), "{more}: {:?}", resolution.diagnostics);
        value(&resolution, Field::GradsDtype)
    };
    assert_eq!(of(", \"zero_optimization\": {\"stage\": 0}"), "fp32");
    for stage in 1..=3 {
        assert_eq!(of(&format!(", \"zero_optimization\": {{\"stage\": {stage}}}")), "bf16");
    }
    let stated = ", \"zero_optimization\": {\"stage\": 1}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}";
    assert_eq!(of(stated), "fp32");
}
