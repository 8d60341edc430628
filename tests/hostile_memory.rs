//! Whatever is pasted or followed, reading and answering it needs at most 256 MB: each input runs in a separate
//! process, which reports its peak memory. Only Linux reports this (`VmHWM` of `/proc/self/status`).

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "a test that cannot go on should stop with the value at hand")]

use std::process::Command;

use shardscope::bash::Environment;
use shardscope::launch::{Request, Resolution, read, resolve};
use shardscope::link::{self, Pasted, PastedText, Shared};
use shardscope::report::{document, report};
use shardscope::session::{Event, State, apply};
use shardscope::source::Source;

#[path = "suite/hostile.rs"]
mod hostile;

/// Maximum memory of a process, including its own program and the tables that it reads. Unit: byte.
const MOST: u64 = 256_000_000;

/// The variable that tells a process which input to run.
const CASE: &str = "SHARDSCOPE_HOSTILE_CASE";

/// Bytes in a long text.
const LONG: usize = 1 << 18;

/// An input with its name, to be built and answered in a separate process.
type Case = (String, Box<dyn Fn()>);

fn answer(name: &str, text: &str) {
    let state = State::default();
    let state = apply(
        state,
        Event::Follow(link::encode(&Shared::Pasted(Pasted {
            texts: vec![PastedText { name: name.to_owned(), text: text.to_owned() }],
            ..Pasted::default()
        }))),
    );
    drop(state);
    answer_files(&[(name.to_owned(), text.to_owned())]);
}

fn answer_files(files: &[(String, String)]) {
    let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let environment = Environment::default();
    print_resolution(&source, &read(&Request { source: &source, environment: &environment, overrides: &[] }));
}

/// Estimates the result of reading, and writes its document.
fn print_resolution(source: &Source, resolution: &Resolution) {
    let report = resolution.plan.as_ref().map(report);
    let document = document(source, resolution, report.as_ref(), true);
    assert!(document.len() < 5_000_000, "{} bytes", document.len());
}

fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let common = [
        ("accelerator", "H100-SXM"),
        ("hidden_size", "8192"),
        ("num_attention_heads", "64"),
        ("seq_length", "4096"),
        ("max_position_embeddings", "4096"),
        ("micro_batch_size", "1"),
        ("bf16", "true"),
        ("gpus_per_node", "8"),
        ("vocab_size", "32000"),
    ];
    common.iter().chain(pairs).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    // Deep pipelines and huge batches, and a million GPUs with their document.
    for (world, pipeline, batch) in [
        ("1024", "1024", "8192"),
        ("4096", "4096", "16777216"),
        ("64", "64", "16777216"),
        ("8", "8", "16777216"),
        ("1048576", "16", "1048576"),
    ] {
        let answer = move || {
            let sizes = [
                ("num_layers", "4096"),
                ("world_size", world),
                ("pipeline_model_parallel_size", pipeline),
                ("global_batch_size", batch),
            ];
            print_resolution(&Source::default(), &resolve(&[], &settings(&sizes)));
        };
        cases.push((format!("{world} GPUs, {pipeline} stages, batch {batch}"), Box::new(answer)));
    }
    // Many files, settings and answers, in links and together.
    let config = |index: usize| {
        let sizes = format!("\"hidden_size\":{},\"num_hidden_layers\":2", 64 + index % 7);
        (format!("c{index}.json"), format!("{{\"model_type\":\"llama\",{sizes}}}"))
    };
    cases.push((
        "9,000 configs".to_owned(),
        Box::new(move || answer_files(&(0..9_000).map(config).collect::<Vec<_>>())),
    ));
    cases.push((
        "20,000 files in a link".to_owned(),
        Box::new(|| {
            let one = PastedText { name: "a.sh".to_owned(), text: String::new() };
            let pasted = Pasted { texts: vec![one; 20_000], ..Pasted::default() };
            drop(apply(State::default(), Event::Follow(link::encode(&Shared::Pasted(pasted)))));
        }),
    ));
    cases.push((
        "60,000 settings".to_owned(),
        Box::new(|| {
            let unknown = (0..60_000).map(|index| (format!("setting_{index}"), "1".to_owned()));
            drop(resolve(&[], &unknown.collect::<Vec<_>>()));
        }),
    ));
    for (name, line) in [
        ("a.yaml", "unknown_key_{}: 1\n"),
        ("a.toml", "unknown_key_{} = 1\n"),
        ("a.sh", "VARIABLE_{}=$OTHER_{}\n"),
        ("b.sh", "torchrun pretrain_gpt.py --unknown-{} 1\n"),
        (
            "a.log",
            "[2026-01-01] iteration {}/60000 | elapsed time per iteration (ms): 1.0 | lm loss: 1.0E+00 |\n",
        ),
    ] {
        let text =
            move || (0..60_000).map(|index| line.replace("{}", &index.to_string())).collect::<String>();
        cases.push((format!("60,000 lines of {name}"), Box::new(move || answer(name, &text()))));
    }
    // Texts designed to take long or to grow without limit: each in one of the languages, a quarter of them in each.
    for (index, (text, _)) in hostile::texts(16).into_iter().enumerate() {
        let name = ["a.sh", "a.yaml", "a.json", "a.toml"][index % 4];
        let long = move || hostile::texts(LONG).swap_remove(index).1;
        cases.push((format!("{name} of {text:?}"), Box::new(move || answer(name, &long()))));
    }
    cases
}

/// The peak memory of this process. Unit: byte.
fn held() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("a size") * 1024
}

#[test]
fn every_hostile_input_is_answered_within_256_mb() {
    let cases = cases();
    if let Ok(index) = std::env::var(CASE) {
        let (name, answer) = &cases[index.parse::<usize>().expect("a number")];
        answer();
        println!("held {} by {name}", held());
        return;
    }
    let itself = std::env::current_exe().expect("this program");
    let mut most = (0, String::new());
    for (index, (name, _)) in cases.iter().enumerate() {
        let mut command = Command::new(&itself);
        command.args(["--exact", "every_hostile_input_is_answered_within_256_mb", "--nocapture"]);
        let ended = command.env(CASE, index.to_string()).output().expect("a process");
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success(), "{name}: {said}{}", String::from_utf8_lossy(&ended.stderr));
        let found =
            said.lines().find_map(|line| line.split_once("held ")?.1.split(' ').next()?.parse::<u64>().ok());
        let bytes = found.expect("what it held");
        assert!(bytes <= MOST, "{name}: {bytes} bytes");
        most = most.max((bytes, name.clone()));
    }
    println!("{} inputs; the most is {} bytes, of {}", cases.len(), most.0, most.1);
}
