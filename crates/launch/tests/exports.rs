//! Every fixture that makes a plan, written out by every export: what is read back is the identical plan, or the export names
//! what it cannot say.
#![allow(clippy::expect_used)]

use std::fmt::Write as _;
use std::path::Path;

use shardscope_bash::Environment;
use shardscope_launch::export::{Exported, bridge_command, deepspeed_json, megatron_command};
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, Marks, Plan};
use shardscope_source::Source;

/// Names and texts.
type Files = Vec<(String, String)>;

fn resolved(files: &[(String, String)], overrides: &[(String, String)]) -> Resolution {
    let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    read(&Request { source: &source, environment: &Environment::default(), overrides })
}

/// The plan without what the reader said of it.
fn bare(resolution: &Resolution) -> Option<Plan> {
    resolution.plan.clone().map(|plan| plan.marked(Marks::default()))
}

fn machine(resolution: &Resolution) -> Vec<(String, String)> {
    let name = resolution.setting(Field::Accelerator).map(|setting| setting.value.written());
    vec![("accelerator".to_owned(), name.unwrap_or_default())]
}

/// Scripts one by one, and the files of each case together.
fn fixtures() -> Vec<(String, Files)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let text = |path: &Path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap_or_default())
    };
    let listed = |folder: &Path| {
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .expect("fixtures")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        paths
    };
    let mut all = Vec::new();
    for path in listed(&data.join("launch")) {
        if path.extension().is_some_and(|extension| extension == "sh") {
            all.push((path.display().to_string(), vec![text(&path)]));
        }
    }
    for case in listed(&data.join("formats/cases")) {
        let aside = ["expected", "source", "environment", "overrides"];
        let files: Vec<_> =
            listed(&case).iter().filter(|path| path.is_file()).map(|path| text(path)).collect();
        let files = files.into_iter().filter(|(name, _)| !aside.contains(&name.as_str())).collect();
        all.push((case.display().to_string(), files));
    }
    all
}

#[test]
fn every_fixture_reads_back_equal_or_is_told_not_to() {
    let (mut written, mut equal, mut told, mut silent) = (0, 0, 0, String::new());
    let mut unread = String::new();
    for (name, files) in fixtures() {
        let target = resolved(&files, &[]);
        let Some(wanted) = bare(&target) else { continue };
        let command = megatron_command(&target);
        // DeepSpeed's file lies beside a command, which says the model and the layout.
        let beside = ("run.sh".to_owned(), command.text.clone());
        let exports: [(&str, &str, Exported, Files); 3] = [
            ("Megatron-LM", "run.sh", command, Vec::new()),
            ("Megatron-Bridge", "run.sh", bridge_command(&target), Vec::new()),
            ("DeepSpeed", "ds_config.json", deepspeed_json(&target), vec![beside]),
        ];
        for (export, file, exported, mut files) in exports {
            written += 1;
            files.push((file.to_owned(), exported.text.clone()));
            let again = resolved(&files, &machine(&target));
            // What an export writes its own reader knows.
            let names = again.setting(Field::NotRead).map(|names| names.value.written());
            if let Some(names) = names.filter(|names| !names.is_empty()) {
                let _ = writeln!(unread, "{export} of {name}: {names}");
            }
            if bare(&again).as_ref() == Some(&wanted) {
                equal += 1;
            } else if exported.unsaid.is_empty() {
                let _ = writeln!(
                    silent,
                    "{export} of {name} reads back otherwise and says nothing:\n{}",
                    exported.text
                );
            } else {
                told += 1;
            }
        }
    }
    println!("{written} exports: {equal} read back equal, {told} name what they cannot say");
    assert!(written >= 90, "only {written} exports of fixtures");
    assert!(silent.is_empty(), "{silent}");
    assert!(unread.is_empty(), "{unread}");
}

/// Windows and linear mixers by the names of Megatron core's configuration.
#[test]
fn mixers_are_read_back_equal() {
    let flags = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 \
         --num-attention-heads 8 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
         --global-batch-size 16 --vocab-size 32000 --bf16 --window-size 127,0 --window-attn-skip-freq 4";
    let set = [("accelerator".to_owned(), "H100-SXM".to_owned())];
    let target = resolved(&[("run.sh".to_owned(), flags.to_owned())], &set);
    let wanted = bare(&target).expect("a plan");
    assert!(wanted.model().mixers.window.is_some(), "{:?}", wanted.model().mixers);
    for exported in [megatron_command(&target), bridge_command(&target)] {
        assert_eq!(exported.unsaid, [], "{}", exported.text);
        let again = resolved(&[("run.sh".to_owned(), exported.text)], &machine(&target));
        assert_eq!(bare(&again).as_ref(), Some(&wanted));
    }
}

/// What a reader says of the machine or of the verdict is no part of a framework's configuration.
#[test]
fn settings_of_its_own_are_written_nowhere() {
    let flags = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 \
         --num-attention-heads 8 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
         --global-batch-size 16 --vocab-size 32000 --bf16";
    let set = [("accelerator", "H100-SXM"), ("memory_headroom", "0.1")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let target = resolved(&[("run.sh".to_owned(), flags.to_owned())], &set);
    for exported in [megatron_command(&target), bridge_command(&target)] {
        assert_eq!(exported.unsaid, [Field::MemoryHeadroom], "{}", exported.text);
        assert!(!exported.text.contains("headroom"), "{}", exported.text);
    }
}

/// A value other than the usual one for every kind of setting.
fn other(field: Field) -> Vec<String> {
    use shardscope_plan::Kind;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match field.kind() {
        Kind::Flag => words(&["true", "false"]),
        Kind::Word(choices) => words(choices.get(..2).unwrap_or(choices)),
        Kind::Text => words(&["plain"]),
        Kind::Counts => words(&["1 2"]),
        Kind::Words => words(&["mlp"]),
        _ => words(&["2", "0.5"]),
    }
}

/// Each setting alone beside a plan, in both families of commands: whatever is written its own reader knows.
#[test]
fn every_setting_that_is_written_is_known_again() {
    let flags = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 \
         --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 \
         --global-batch-size 16 --vocab-size 32000 --bf16 --num-experts 8 --moe-grouped-gemm";
    let (mut written, mut unread) = (0, String::new());
    for field in Field::ALL {
        for value in other(*field) {
            let set =
                [("accelerator".to_owned(), "H100-SXM".to_owned()), (field.name().to_owned(), value.clone())];
            let target = resolved(&[("run.sh".to_owned(), flags.to_owned())], &set);
            for (export, exported) in
                [("Megatron-LM", megatron_command(&target)), ("Megatron-Bridge", bridge_command(&target))]
            {
                written += 1;
                let again = resolved(&[("run.sh".to_owned(), exported.text)], &machine(&target));
                let names = again.setting(Field::NotRead).map(|names| names.value.written());
                if let Some(names) = names.filter(|names| !names.is_empty()) {
                    let _ = writeln!(unread, "{export} with {}={value}: {names}", field.name());
                }
            }
        }
    }
    assert!(written > 500, "{written}");
    assert!(unread.is_empty(), "{unread}");
}
