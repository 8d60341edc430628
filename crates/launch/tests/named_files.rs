//! The settings file that a command names: which text it is, and what else stands beside it.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Severity, Source};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn value(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

#[track_caller]
fn stops(resolution: &Resolution, name: &str) {
    assert!(resolution.plan.is_none(), "a verdict all the same");
    let said = resolution.diagnostics.iter().any(|said| {
        said.code == Code::MissingFile && said.severity == Severity::Error && said.message.contains(name)
    });
    assert!(said, "{name} in {:?}", resolution.diagnostics);
}

/// TRL's settings with a micro-batch of this size.
fn settings(micro: u64) -> String {
    format!(
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nbf16: true\nmax_length: 2048\ngradient_checkpointing: true\n\
         per_device_train_batch_size: {micro}\nlearning_rate: 2.0e-05\noutput_dir: o\n"
    )
}

fn writes(path: &str, content: &str) -> String {
    format!("cat > {path} <<EOF\n{content}EOF\n")
}

const PROGRAM: &str = "accelerate launch --num_processes 8 run_sft.py";

#[test]
fn a_variable_in_a_written_file_is_of_its_key_alone() {
    for place in ["$SCRATCH/o", "$SCRATCH", "\"${SCRATCH}/o\"", "$(date +%s)", "o # in $SCRATCH"] {
        let file = settings(3).replace("output_dir: o", &format!("output_dir: {place}"));
        let script = writes("c.yaml", &file) + "NPROC_PER_NODE=8 trl sft --config c.yaml --num_processes 8\n";
        let read = resolved(&[("run.sh", &script)]);
        assert!(read.plan.is_some(), "{place}: {:?} {:?}", read.questions, read.diagnostics);
        assert_eq!(value(&read, Field::MicroBatchSize), "3", "{place}");
    }
    let open = settings(3).replace("_batch_size: 3", "_batch_size: $MICRO");
    let read = resolved(&[("run.sh", &(writes("c.yaml", &open) + "trl sft --config c.yaml\n"))]);
    assert!(read.plan.is_none());
    let asked: Vec<&str> = read.questions.iter().map(|question| question.name()).collect();
    assert!(asked.contains(&"micro_batch_size"), "{asked:?}");
    // Keys of which nothing is known.
    let open = settings(3) + "$MORE\n";
    let read = resolved(&[("run.sh", &(writes("c.yaml", &open) + "trl sft --config c.yaml\n"))]);
    stops(&read, "c.yaml");
}

#[test]
fn trls_file_is_asked_for() {
    for method in ["sft", "dpo", "grpo"] {
        for named in
            ["--config c.yaml", "--config=a/c.yaml", "--model_name_or_path Qwen/Qwen2.5-7B --config c.yaml"]
        {
            stops(&resolved(&[("run.sh", &format!("trl {method} {named}\n"))]), "c.yaml");
        }
    }
}

#[test]
fn a_written_file_is_as_its_command_finds_it() {
    let run = "trl sft --config c.yaml --num_processes 8\n";
    let micro = |files: &[(&str, &str)]| value(&resolved(files), Field::MicroBatchSize);
    let given = settings(5);
    let before = writes("c.yaml", &settings(3)) + run;
    assert_eq!(micro(&[("run.sh", &before)]), "3");
    assert_eq!(micro(&[("run.sh", &before), ("c.yaml", &given)]), "3");
    let behind = run.to_owned() + &writes("c.yaml", &settings(3));
    assert_eq!(micro(&[("run.sh", &behind), ("c.yaml", &given)]), "5");
    stops(&resolved(&[("run.sh", &behind)]), "c.yaml");
    let both = before.clone() + &writes("c.yaml", &settings(4));
    assert_eq!(micro(&[("run.sh", &both)]), "3");
    let twice = writes("c.yaml", &settings(4)) + &before;
    assert_eq!(micro(&[("run.sh", &twice)]), "3");
    let more = before.replace("trl", "cat >> c.yaml <<EOF\nlora_r: 8\nuse_peft: true\nEOF\ntrl");
    assert_eq!(value(&resolved(&[("run.sh", &more)]), Field::LoraRank), "8");
    // Another folder's file, and one of a folder that only the machine knows.
    let other = writes("old/c.yaml", &settings(3)) + run;
    assert_eq!(micro(&[("run.sh", &other), ("c.yaml", &given)]), "5");
    stops(&resolved(&[("run.sh", &other)]), "c.yaml");
    for path in ["./c.yaml", "$DIR/c.yaml", "/tmp/c.yaml"] {
        assert_eq!(micro(&[("run.sh", &(writes(path, &settings(3)) + run))]), "3", "{path}");
    }
}

#[test]
fn of_files_with_one_name_the_named_one_is_read() {
    let (one, other) = (settings(3), settings(5));
    let read = |named: &str, first: &str, second: &str| {
        let script = format!("trl sft --config {named} --num_processes 8\n");
        resolved(&[("run.sh", &script), (first, &one), (second, &other)])
    };
    let micro =
        |named: &str, first: &str, second: &str| value(&read(named, first, second), Field::MicroBatchSize);
    assert_eq!(micro("b/c.yaml", "a/c.yaml", "b/c.yaml"), "5");
    assert_eq!(micro("a/c.yaml", "a/c.yaml", "b/c.yaml"), "3");
    assert_eq!(micro("/home/me/a/c.yaml", "a/c.yaml", "b/c.yaml"), "3");
    assert_eq!(micro("./c.yaml", "a/c.yaml", "c.yaml"), "5");
    stops(&read("c.yaml", "a/c.yaml", "b/c.yaml"), "a/c.yaml, b/c.yaml");
}

#[test]
fn the_option_for_settings_names_the_file() {
    let (one, other) =
        (settings(3), "{\"train_batch_size\": \"auto\", \"zero_optimization\": {\"stage\": 2}}");
    for before in ["--deepspeed_config ds.json", "--data_config data.yaml"] {
        let script = format!("{PROGRAM} {before} --config c.yaml\n");
        let data = "train: a.json\nvalidation: b.json\n";
        let read =
            resolved(&[("run.sh", &script), ("c.yaml", &one), ("ds.json", other), ("data.yaml", data)]);
        assert_eq!(value(&read, Field::MicroBatchSize), "3", "{before}: {:?}", read.diagnostics);
    }
}

/// The file of another command, and one that no command names.
#[test]
fn files_that_the_command_does_not_name_are_left_out() {
    let left = |read: &Resolution, name: &str| {
        let message = format!("{name} is left out: the command takes its settings from c.yaml");
        read.diagnostics.iter().any(|said| said.severity == Severity::Warning && said.message == message)
    };
    let fields =
        [Field::TrainType, Field::MicroBatchSize, Field::BaseQuantization, Field::Packing, Field::LoraRank];
    let settings_of = |read: &Resolution| fields.map(|field| value(read, field));
    let one = settings(3);
    let other = settings(5) + "use_peft: true\nload_in_4bit: true\nlora_r: 8\npacking: true\n";
    let first = "trl sft --config c.yaml --num_processes 8\n";
    let alone = resolved(&[("run.sh", first), ("c.yaml", &one)]);
    let both = format!("{first}trl dpo --config e.yaml --num_processes 8\n");
    let read = resolved(&[("run.sh", &both), ("c.yaml", &one), ("e.yaml", &other)]);
    assert_eq!(settings_of(&read), settings_of(&alone));
    assert!(left(&read, "e.yaml"), "{:?}", read.diagnostics);

    let full = "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: full\ndataset: a\n\
        template: qwen\ncutoff_len: 2048\nper_device_train_batch_size: 1\nbf16: true\n";
    let lora =
        full.replace("finetuning_type: full", "finetuning_type: lora\nlora_rank: 8\nquantization_bit: 4");
    let engine = "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": \"auto\"}";
    let run = "FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli train c.yaml\n";
    let alone = resolved(&[("run.sh", run), ("c.yaml", full), ("ds.json", engine)]);
    let read = resolved(&[("run.sh", run), ("c.yaml", full), ("d.yaml", &lora), ("ds.json", engine)]);
    assert_eq!(settings_of(&read), settings_of(&alone));
    assert_eq!(value(&read, Field::ZeroStage), "2");
    assert!(left(&read, "d.yaml") && !left(&read, "ds.json"), "{:?}", read.diagnostics);
    assert!(alone.diagnostics.iter().all(|said| !said.message.contains("left out")));
}

/// Each command's words are compared with the file, which is read once: with a reading for each of 400 commands this took
/// more than a minute.
#[test]
fn a_file_is_read_once_for_all_commands_that_name_it() {
    let (mut file, mut script) = (String::new(), String::new());
    for key in 0..4_000 {
        let _ = writeln!(file, "key{key}: {key}");
    }
    for _ in 0..400 {
        script.push_str("uv run train_foo.py --config c.yaml zzI.a=1\n");
    }
    let start = Instant::now();
    let read = resolved(&[("c.yaml", &file), ("run.sh", &script)]);
    assert!(read.plan.is_none());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
