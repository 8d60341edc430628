//! Links with settings: the same plan without the script, with nothing unnecessary in them.

use serde_json::Value;
use shardscope::bash::Environment;
use shardscope::launch::{Request, Resolution, minimal_settings, read, resolve};
use shardscope::link::{Shared, decode, encode};
use shardscope::session::EXAMPLE;
use shardscope::source::Source;

use super::drafts::int;
use super::resolve::resolved;

/// Checks that the link of `resolution` gives its plan, and that plan's link is identical; returns the link.
#[track_caller]
fn check(id: &str, resolution: &Resolution) -> String {
    let settings = minimal_settings(resolution).unwrap_or_else(|| panic!("{id}: settings cannot say it"));
    let link = encode(&Shared::Settings(settings));
    let Ok(Some(Shared::Settings(opened))) = decode(&link) else { panic!("{id}: {link} does not open") };
    let again = resolve(&[], &opened);
    assert_eq!(again.plan, resolution.plan, "{id}: {link}");
    assert!(again.questions.len() <= resolution.questions.len(), "{id}: {:?}", again.questions);
    let second = minimal_settings(&again).expect("a plan");
    assert_eq!(encode(&Shared::Settings(second)), link, "{id}: not canonical");
    link
}

fn read_text(text: &str) -> Resolution {
    let source = Source::new(text);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

#[test]
fn a_link_makes_the_plan_of_megatrons_flags() {
    let (mut links, mut lengths) = (0, 0);
    for line in include_str!("../data/megatron/resolved.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let id = case["id"].as_str().expect("an id");
        let resolution = resolved(case["flags"].as_str().expect("flags"), int(&case, "world"));
        lengths += check(id, &resolution).len();
        links += 1;
    }
    assert!(links > 20, "{links} links");
    assert!(lengths / links < 450, "{} characters on average", lengths / links);
}

#[test]
fn the_link_of_the_example_can_be_typed() {
    assert_eq!(
        check("example", &read_text(EXAMPLE)),
        "/1?accelerator=H100-SXM&bf16=true&gbs=512&gpus_per_node=8&heads=32&hidden=4096&layers=24&mbs=4&nodes=2&pp=2&seq=2048&software=megatron_legacy&swiglu=true&tp=2&train_iters=500000&use_distributed_optimizer=true&use_flash_attn=true&vocab_size=50257"
    );
}

#[test]
fn no_path_of_the_author_goes_into_a_link() {
    let text = EXAMPLE
        .replace("GPT2BPETokenizer", "Llama2Tokenizer")
        .replace("--vocab-file gpt2-vocab.json", "--tokenizer-model /home/ada/Llama-2-7B/tokenizer.model");
    let link = check("path", &read_text(&text));
    assert!(!link.contains("ada") && link.contains("vocab_size=32000"), "{link}");
}

#[test]
fn no_plan_has_no_link() {
    assert_eq!(minimal_settings(&read_text("prose")), None);
    assert_eq!(minimal_settings(&read_text("")), None);
}

#[test]
fn a_link_makes_the_plan_of_any_settings_file() {
    let mut links = 0;
    for folder in super::formats::folders() {
        let (_, resolution) = super::formats::resolution(&folder);
        if resolution.plan.is_some() {
            check(&folder.display().to_string(), &resolution);
            links += 1;
        }
    }
    assert!(links > 15, "{links} links");
}
