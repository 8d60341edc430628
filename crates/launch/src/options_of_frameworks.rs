//! Every option of the Megatron family's frameworks that `options_of_frameworks.txt` lists is read or classified.

use crate::Argument;
use crate::megatron::read as read_flags;
use crate::options::{self, Changes, OfWords, of_key};
use crate::read::readings;
use shardscope_bash::Environment;
use shardscope_source::Source;
use std::collections::BTreeMap;
use std::fmt::Write;

const FACTS: &str = include_str!("options_of_frameworks.txt");

/// Keys and their values.
type Stated = &'static [(&'static str, &'static str)];

/// Keys by which each reader recognises its own files, or without which it ignores one of its groups. All others are
/// set to 1.
const STATED: [(&str, &str, Stated); 6] = [
    (
        "a nanotron configuration",
        "a.yaml",
        &[("parallelism.tp_mode", "ALL_REDUCE"), ("model.model_config.is_llama_config", "true")],
    ),
    (
        "a NeMo-RL configuration",
        "a.yaml",
        &[
            ("grpo.num_prompts_per_step", "8"),
            ("policy.model_name", "a"),
            ("policy.megatron_cfg.enabled", "true"),
        ],
    ),
    ("a GPT-NeoX configuration", "a.yml", &[("pipe_parallel_size", "1"), ("model_parallel_size", "1")]),
    ("llm-foundry", "a.yaml", &[("train_loader.name", "text"), ("model.name", "mpt_causal_lm")]),
    (
        "a torchtitan configuration",
        "a.yaml",
        &[("job.config_file", "a"), ("model.name", "llama3"), ("model.flavor", "8B")],
    ),
    (
        "MindSpeed-LLM",
        "a.yaml",
        &[("parallel.fsdp_modules", "[a]"), ("training.optimizer", "adamw"), ("data.cutoff_len", "8")],
    ),
];

/// A framework: its name, the reader for its options, and the options.
fn facts() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let mut all: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for line in FACTS.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("= ") {
            Some(head) => {
                let mut parts = head.split(" | ");
                let (name, reader) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                all.push((name, reader, Vec::new()));
            }
            None => {
                if let Some((_, _, names)) = all.last_mut() {
                    names.extend(line.split_ascii_whitespace());
                }
            }
        }
    }
    all
}

/// Keys as a YAML tree.
#[derive(Default)]
struct Keys {
    below: BTreeMap<String, Keys>,
    value: Option<String>,
}

impl Keys {
    fn put(&mut self, path: &str, value: &str) {
        match path.split_once('.') {
            Some((first, rest)) => self.below.entry(first.to_owned()).or_default().put(rest, value),
            None => self.below.entry(path.to_owned()).or_default().value = Some(value.to_owned()),
        }
    }

    fn write(&self, depth: usize, text: &mut String) {
        for (key, keys) in &self.below {
            let _ = match (&keys.value, keys.below.is_empty()) {
                (Some(value), true) => writeln!(text, "{:depth$}{key}: {value}", ""),
                _ => writeln!(text, "{:depth$}{key}:", ""),
            };
            keys.write(depth + 2, text);
        }
    }
}

#[test]
fn every_option_of_the_frameworks_is_read_or_classed() {
    let mut missing = String::new();
    for (name, reader, options) in facts() {
        let unknown = if reader == "--" { unknown_flags(&options) } else { unknown_keys(reader, &options) };
        if !unknown.is_empty() {
            let _ = writeln!(missing, "{name}: {}", unknown.join(" "));
        }
    }
    assert!(missing.is_empty(), "options that nobody has classed:\n{missing}");
}

/// The options of Megatron's command line that are only known by name.
fn unknown_flags<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let mut line = format!("--num-layers 2 {}", signs());
    for option in options {
        let _ = write!(line, " --{option} 1");
    }
    let words = Argument::split(&line);
    let (reading, frameworks) = (read_flags(&words), OfWords::new(&words));
    let unread: Vec<&str> = reading.not_read.iter().map(|item| item.name.trim_start_matches("--")).collect();
    let little = |option: &str| matches!(frameworks.changes(option, "1"), Some(Changes::Little(_)));
    options.iter().copied().filter(|option| unread.contains(option) && !little(option)).collect()
}

fn signs() -> String {
    options::signs().map(|sign| format!("--{sign}x")).collect::<Vec<_>>().join(" ")
}

fn unknown_keys<'a>(reader: &str, options: &[&'a str]) -> Vec<&'a str> {
    let (_, file, stated) =
        STATED.iter().find(|(of, ..)| *of == reader).unwrap_or_else(|| panic!("{reader}"));
    let mut keys = Keys::default();
    for option in options {
        keys.put(option, "1");
    }
    for (path, value) in *stated {
        keys.put(path, value);
    }
    let mut text = String::new();
    keys.write(0, &mut text);
    let source = Source::from_files([(*file, text.as_str())]);
    let readings = readings(&source, &Environment::default());
    let unread: Vec<&str> =
        readings.iter().flat_map(|reading| &reading.not_read).map(|item| item.name.as_str()).collect();
    let classed = |path: &str| matches!(of_key(reader, path, "1"), Some(Changes::Little(_)));
    assert!(readings.iter().any(|reading| !reading.found.is_empty()), "{reader} does not take\n{text}");
    options.iter().copied().filter(|option| unread.contains(option) && !classed(option)).collect()
}

#[test]
fn an_option_changes_what_its_row_says_at_its_value() {
    let of = |line: &str, name: &str, value: &str| OfWords::new(&Argument::split(line)).changes(name, value);
    let stops = |changes: Option<Changes>| matches!(changes, Some(Changes::Stops(..)));
    assert!(stops(of("", "loss-compute-mode", "chunk")));
    assert!(matches!(of("", "loss-compute-mode", "default"), Some(Changes::Nothing(_))));
    // A switch that is off does not stop the plan, and one whose default is yes does if it is off.
    assert!(!stops(of("", "use-ema", "false")) && stops(of("", "use-ema", "")));
    let yaml = "--perform_initialization --fp8_wgrad";
    assert!(!stops(of(yaml, "fp8_wgrad", "")) && stops(of(yaml, "fp8_wgrad", "false")));
    assert!(stops(of(yaml, "activation-func", "openai_gelu")));
    // Names that other programs share belong to a framework if another of its options is present.
    assert_eq!(of("--gamma 1", "gamma", "1"), None);
    assert!(of("--rollout-batch-size 8", "gamma", "1").is_some());
    assert!(matches!(of("--num_rollout 8", "sglang-reasoning-parser", "a"), Some(Changes::Nothing(_))));
    assert!(stops(of("--num_rollout 8", "sglang-moe-dense-tp-size", "1")));
    // The longer path takes precedence.
    let of = |path: &str| of_key("a NeMo-RL configuration", path, "1");
    assert!(stops(of("teacher.precision")) && of("policy.nobody").is_none());
}
