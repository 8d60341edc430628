//! Every option of the trainers in `tests/data/options` is read or classified.

use super::accelerate;
use super::deepspeed;
use super::frameworks::{LITGPT, PRIME_RL, PRIME_SFT, TORCHTUNE};
use super::reader::Reader;
use super::rl::RlFormat;
use super::scalars::{Leaf, Scalars};
use super::trainer::{Dialect, Oumi, read_scalars};
use crate::options::{Changes, SWIFT_MEGATRON, of_key};
use crate::telling::{UNKNOWN, WHAT};
use crate::{Argument, Reading, megatron};
use shardscope_config_tree::read_toml;

/// A framework's options from its source, the section of the table that its reader finishes with, and how a
/// text with one of them is read.
struct Facts {
    names: &'static str,
    section: &'static str,
    read: fn(&str, &str) -> Reading,
}

fn scalars(path: &str, value: &str) -> Scalars {
    Scalars::from_leaves(vec![Leaf { path: path.to_owned(), value: value.to_owned(), ..Leaf::default() }])
}

fn word(text: String) -> Argument {
    Argument { text, ..Argument::default() }
}

macro_rules! facts {
    ($($file:literal, $section:expr, $read:expr;)*) => {
        [$(Facts { names: include_str!(concat!("../tests/data/options/", $file, ".txt")), section: $section, read: $read }),*]
    };
}

fn all() -> Vec<Facts> {
    let facts = facts![
        "transformers", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "trl", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "trl-1.16", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "transformers-4", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "trl-0", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "peft", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "unsloth", "unsloth", |path, value| read_scalars(Dialect::Unsloth, &scalars(path, value));
        "trl", "unsloth", |path, value| read_scalars(Dialect::Unsloth, &scalars(path, value));
        "transformers", "unsloth", |path, value| read_scalars(Dialect::Unsloth, &scalars(path, value));
        "llama-cookbook", "llama-cookbook", |path, value| read_scalars(Dialect::LlamaCookbook, &scalars(path, value));
        "DeepSpeed-Chat", "DeepSpeed-Chat", |path, value| read_scalars(Dialect::DeepSpeedChat, &scalars(path, value));
        "alignment-handbook", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "LLaMA-Factory", "LLaMA-Factory", |path, value| read_scalars(Dialect::LlamaFactory, &scalars(path, value));
        "LLaMA-Factory-0", "LLaMA-Factory", |path, value| read_scalars(Dialect::LlamaFactory, &scalars(path, value));
        "ms-swift", "ms-swift", |path, value| read_scalars(Dialect::Swift, &scalars(path, value));
        "ms-swift-4.6", "ms-swift", |path, value| read_scalars(Dialect::Swift, &scalars(path, value));
        "ms-swift-megatron", SWIFT_MEGATRON, |path, value| {
            let words = [word(format!("--{path}")), word(value.to_owned())];
            megatron::read_of(&words, SWIFT_MEGATRON)
        };
        "ms-swift-megatron-4.6", SWIFT_MEGATRON, |path, value| {
            let words = [word(format!("--{path}")), word(value.to_owned())];
            megatron::read_of(&words, SWIFT_MEGATRON)
        };
        "axolotl", "axolotl", |path, value| read_scalars(Dialect::Axolotl, &scalars(path, value));
        "axolotl-0.21", "axolotl", |path, value| read_scalars(Dialect::Axolotl, &scalars(path, value));
        "torchtune", "torchtune", |path, value| TORCHTUNE.read_leaves(&scalars(path, value));
        "litgpt", "litgpt", |path, value| LITGPT.read_leaves(&scalars(path, value));
        "verl", "a verl configuration", |path, value| RlFormat::Verl.read_words(&[word(format!("{path}={value}"))]);
        "verl-0.9", "a verl configuration", |path, value| RlFormat::Verl.read_words(&[word(format!("{path}={value}"))]);
        "verl-sft", "a configuration of verl's supervised trainer", |path, value| RlFormat::VerlSft.read_words(&[word(format!("{path}={value}"))]);
        "verl-sft-engine", "a configuration of verl's supervised trainer", |path, value| RlFormat::VerlSft.read_words(&[word(format!("{path}={value}"))]);
        "verl-sft-0.9", "a configuration of verl's supervised trainer", |path, value| RlFormat::VerlSft.read_words(&[word(format!("{path}={value}"))]);
        "EasyR1", "a configuration of EasyR1", |path, value| RlFormat::EasyR1.read_words(&[word(format!("{path}={value}"))]);
        "OpenRLHF", "an OpenRLHF command", |path, value| RlFormat::OpenRlhf.read_words(&[word(format!("{path}={value}"))]);
        "OpenRLHF-0.11", "an OpenRLHF command", |path, value| RlFormat::OpenRlhf.read_words(&[word(format!("{path}={value}"))]);
        "prime-rl", "prime-rl", |path, value| PRIME_RL.read_leaves(&scalars(path, value));
        "prime-rl-sft", "prime-rl", |path, value| PRIME_SFT.read_leaves(&scalars(path, value));
        "FastChat", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "LLaVA", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "TinyLLaVA", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "InternVL", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "LLaVA-NeXT", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "LMFlow", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "Firefly", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "oumi", "transformers' Trainer", |path, value| {
            let tree = read_toml(&format!("{path} = {value:?}\n"), 0);
            tree.documents.first().map(|root| Oumi.read(root)).unwrap_or_default()
        };
        "open-instruct", "open-instruct", |path, value| read_scalars(Dialect::OpenInstruct, &scalars(path, value));
        "open-instruct-grpo", "a GRPO command of open-instruct", |path, value| RlFormat::OpenInstruct.read_words(&[word(format!("--{path}={value}"))]);
        "accelerate", "an accelerate configuration", |path, value| accelerate::of_scalars(&scalars(path, value));
        "DeepSpeed", "a DeepSpeed configuration", |path, value| deepspeed::read_within(scalars(path, value).all());
        "DeepSpeed-0.19", "a DeepSpeed configuration", |path, value| deepspeed::read_within(scalars(path, value).all());
    ];
    facts.into()
}

/// Values of each kind that no option has by default.
const VALUES: [&str; 3] = ["true", "7", "a_word"];

fn is_known(facts: &Facts, name: &str) -> bool {
    let known = |value: &&str| {
        let reading = (facts.read)(name, value);
        let same = |other: &str| other.trim_start_matches('-') == name;
        let stopped = reading
            .not_modelled
            .iter()
            .any(|item| same(&item.name) && (item.message == UNKNOWN || item.message == WHAT));
        let marked = reading.not_read.iter().any(|item| same(&item.name));
        !stopped && (!marked || matches!(of_key(facts.section, name, value), Some(Changes::Little(_))))
    };
    VALUES.iter().all(known)
}

#[test]
fn every_option_of_a_framework_is_classed() {
    let mut missing = String::new();
    for facts in all() {
        let mut lines = facts.names.lines();
        let source = lines.next().unwrap_or_default();
        assert!(source.starts_with("# "), "{source}");
        let unknown: Vec<&str> = lines.filter(|name| !is_known(&facts, name)).collect();
        if !unknown.is_empty() {
            missing += &format!("\n{source}\n{}\n", unknown.join(" "));
        }
    }
    assert!(missing.is_empty(), "{missing}");
}

#[test]
fn values_take_back_what_an_option_lacks() {
    let idle = |changes| matches!(changes, Some(Changes::Nothing(_)));
    let stops = |changes| matches!(changes, Some(Changes::Stops(..)));
    let of = |name: &str, value: &str| of_key("ms-swift", name, value);
    assert!(idle(of("init-weights", "pissa")));
    assert!(stops(of("--init_weights", "lora-ga")));
    // Programs that use unsloth also have TRL's and transformers' options.
    assert!(stops(of_key("unsloth", "label_smoothing_factor", "0.1")));
    assert!(idle(of_key("unsloth", "length_column_name", "length")));
    assert!(stops(of_key("unsloth", "teacher_server_urls", "a")));
    assert!(stops(of_key("unsloth", "resize_model_vocab", "32064")));
    assert!(idle(of_key("unsloth", "finetune_mlp_modules", "True")));
    assert!(stops(of_key("unsloth", "finetune_mlp_modules", "False")));
    assert!(stops(of_key("llama-cookbook", "hsdp", "True")));
    assert!(idle(of_key("llama-cookbook", "sharding_strategy", "ShardingStrategy.FULL_SHARD")));
    assert!(stops(of_key("llama-cookbook", "sharding_strategy", "ShardingStrategy.NO_SHARD")));
    assert!(stops(of_key("DeepSpeed-Chat", "compute_fp32_loss", "")));
    assert!(idle(of_key("DeepSpeed-Chat", "dropout", "0.0")));
    assert!(stops(of_key("DeepSpeed-Chat", "dropout", "0.1")));
    // These trainers inherit the options of transformers' Trainer; an option that is on by default
    // is not harmless when it is off.
    assert!(stops(of("label_smoothing_factor", "0.1")));
    assert!(idle(of("label_smoothing_factor", "0.0")));
    let linear =
        |value: &str| of_key("a DeepSpeed configuration", "zero_optimization.memory_efficient_linear", value);
    assert!(idle(linear("true")));
    assert!(stops(linear("false")));
    assert!(idle(of_key("ms-swift's megatron commands", "padding_free", "true")));
    assert!(matches!(
        of_key("ms-swift's megatron commands", "padding_free", "false"),
        Some(Changes::Little(_))
    ));
    assert!(idle(of_key("axolotl", "test_datasets.3.path", "a")));
    assert_eq!((of("my_own_option", "1"), of_key("nobody", "stream", "1")), (None, None));
}
