use super::{Class, Line, SWIFT_MEGATRON, find, lines, sections, spelt};
use crate::formats::accelerate;
use crate::formats::deepspeed;
use crate::formats::frameworks::{LITGPT, PRIME_RL, PRIME_SFT, TORCHTUNE};
use crate::formats::reader::Reader;
use crate::formats::rl::RlFormat;
use crate::formats::scalars::{Leaf, Scalars};
use crate::formats::trainer::{Dialect, Oumi, read_scalars};
use crate::telling::{UNKNOWN, WHAT};
use crate::{Argument, Reading, megatron};
use shardscope_config_tree::read_toml;

/// A framework's options as its source has them, the section of the table that its reader finishes with, and how a text with one of
/// them is read.
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
        [$(Facts { names: include_str!(concat!("../../../tests/data/options/", $file, ".txt")), section: $section, read: $read }),*]
    };
}

fn all() -> Vec<Facts> {
    let facts = facts![
        "transformers", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "trl", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "transformers-4", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "trl-0", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "peft", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "alignment-handbook", "TRL", |path, value| read_scalars(Dialect::Trl, &scalars(path, value));
        "LLaMA-Factory", "LLaMA-Factory", |path, value| read_scalars(Dialect::LlamaFactory, &scalars(path, value));
        "ms-swift", "ms-swift", |path, value| read_scalars(Dialect::Swift, &scalars(path, value));
        "ms-swift-megatron", SWIFT_MEGATRON, |path, value| {
            let words = [word(format!("--{path}")), word(value.to_owned())];
            megatron::read_of(&words, SWIFT_MEGATRON)
        };
        "axolotl", "axolotl", |path, value| read_scalars(Dialect::Axolotl, &scalars(path, value));
        "torchtune", "torchtune", |path, value| TORCHTUNE.read_leaves(&scalars(path, value));
        "litgpt", "litgpt", |path, value| LITGPT.read_leaves(&scalars(path, value));
        "verl", "a verl configuration", |path, value| RlFormat::Verl.read_words(&[word(format!("{path}={value}"))]);
        "verl-sft", "a configuration of verl's supervised trainer", |path, value| RlFormat::VerlSft.read_words(&[word(format!("{path}={value}"))]);
        "verl-sft-engine", "a configuration of verl's supervised trainer", |path, value| RlFormat::VerlSft.read_words(&[word(format!("{path}={value}"))]);
        "EasyR1", "a configuration of EasyR1", |path, value| RlFormat::EasyR1.read_words(&[word(format!("{path}={value}"))]);
        "OpenRLHF", "an OpenRLHF command", |path, value| RlFormat::OpenRlhf.read_words(&[word(format!("{path}={value}"))]);
        "prime-rl", "prime-rl", |path, value| PRIME_RL.read_leaves(&scalars(path, value));
        "prime-rl-sft", "prime-rl", |path, value| PRIME_SFT.read_leaves(&scalars(path, value));
        "FastChat", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
        "LLaVA", "transformers' Trainer", |path, value| read_scalars(Dialect::Transformers, &scalars(path, value));
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
    ];
    facts.into()
}

/// Values that no option has by default, of each kind.
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
        !stopped && (!marked || matches!(find(facts.section, name, value), Some(Class::Small(_))))
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

/// Every line of the table has a meaning, and of a framework's options each one; names that begin as another does are no second one.
#[test]
fn every_option_has_one_meaning() {
    let (mut at, mut meaning, mut seen) = ("", None, Vec::new());
    for line in lines() {
        match line {
            Line::Section(name, others) => {
                for other in others {
                    assert!(sections().contains_key(other), "{other}");
                }
                (at, meaning) = (name, None);
                seen.clear();
            }
            Line::Meaning(class) => {
                assert!(class.is_some(), "a meaning in {at}");
                meaning = class;
            }
            Line::Options(names) => {
                for name in names.split_ascii_whitespace() {
                    assert!(meaning.is_some(), "{name} of {at} means nothing");
                    assert!(!seen.contains(&name), "{name} of {at} means two things");
                    assert_eq!(name, spelt(name));
                    seen.push(name);
                }
            }
        }
    }
    assert!(sections().len() > 10);
}

#[test]
fn values_take_back_what_an_option_lacks() {
    let of = |name: &str, value: &str| find("ms-swift", name, value);
    assert_eq!(of("init-weights", "pissa"), Some(Class::Idle));
    assert!(matches!(of("--init_weights", "lora-ga"), Some(Class::Lacks(..))));
    // What transformers' Trainer has, its trainers have; what is on by default is not harmless when it is off.
    assert!(matches!(of("label_smoothing_factor", "0.1"), Some(Class::Lacks(..))));
    assert_eq!(of("label_smoothing_factor", "0.0"), Some(Class::Idle));
    let linear =
        |value: &str| find("a DeepSpeed configuration", "zero_optimization.memory_efficient_linear", value);
    assert_eq!(linear("true"), Some(Class::Idle));
    assert!(matches!(linear("false"), Some(Class::Lacks(..))));
    assert_eq!(find("ms-swift's megatron commands", "padding_free", "true"), Some(Class::Idle));
    assert!(matches!(find("ms-swift's megatron commands", "padding_free", "false"), Some(Class::Small(_))));
    assert_eq!(find("axolotl", "test_datasets.3.path", "a"), Some(Class::Idle));
    assert_eq!((of("my_own_option", "1"), find("nobody", "stream", "1")), (None, None));
}
