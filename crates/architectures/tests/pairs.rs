//! Parameters of encoder-decoders against the library's own counts (`data/pairs.jsonl`, made by `data/pairs.py` with transformers
//! 5.23.0): every one equal.

use shardscope_architectures::{Architecture, encoder_decoder};
use shardscope_config_tree::{Node, read_json};

const LINES: &str = include_str!("data/pairs.jsonl");

#[test]
fn every_encoder_decoder_counts_as_the_library_does() {
    let mut wrong = Vec::new();
    for text in LINES.lines() {
        let line = read_json(text, 0).documents.remove(0);
        let name = line.get("name").and_then(Node::text).unwrap_or_default().to_owned();
        let counted = line.get("parameters").and_then(Node::whole);
        let ours = line.get("config").and_then(encoder_decoder);
        if ours.is_none() || ours != counted {
            wrong.push(format!("{name}: {ours:?}, counted {counted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(LINES.lines().count(), 89);
}

/// Types whose layers are known count the same by their shapes, and once more by sizes alone.
#[test]
fn shapes_count_as_the_library_does() {
    let mut compared = 0;
    for text in LINES.lines() {
        let line = read_json(text, 0).documents.remove(0);
        let config = line.get("config").expect("a configuration");
        let model_type = config.get("model_type").and_then(Node::word).unwrap_or_default();
        if !matches!(model_type, "t5" | "mt5") {
            continue;
        }
        let read = Architecture::read(config).expect("a shape");
        let counted = line.get("parameters").and_then(Node::whole);
        // The library counts a model made anew, whose output layer is tied whatever the file says.
        let own = if read.shape.tied { 0 } else { read.shape.vocabulary * read.shape.hidden };
        let ours = [read.parameters, read.in_megatron].map(|ours| Some(ours - own));
        assert_eq!(ours, [counted; 2], "{text}");
        compared += 1;
    }
    assert!(compared > 10, "{compared} compared");
}

/// Only "gated-" makes a gate: the parameters of `T5ForConditionalGeneration` of transformers 5.23 with each activation.
#[test]
fn a_plain_activation_has_no_gate() {
    for (activation, parameters) in [
        ("relu", 205_760),
        ("gelu", 205_760),
        ("silu", 205_760),
        ("gelu_new", 205_760),
        ("gated-gelu", 254_912),
        ("gated-silu", 254_912),
    ] {
        let config = format!(
            r#"{{"model_type":"t5","vocab_size":512,"d_model":64,"d_kv":16,"d_ff":192,"num_layers":2,"num_heads":3,
            "feed_forward_proj":"{activation}"}}"#
        );
        let read = Architecture::read(&read_json(&config, 0).documents[0]).expect("a shape");
        assert_eq!([read.parameters, read.in_megatron], [parameters; 2], "{activation}");
    }
}

#[test]
fn what_is_not_known_has_no_count() {
    let count = |config: &str| encoder_decoder(&read_json(config, 0).documents[0]);
    assert_eq!(count(r#"{"model_type":"t5gemma"}"#), None);
    assert_eq!(count(r#"{"model_type":"llama"}"#), None);
    assert_eq!(count(r#"{"model_type":"t5","d_model":"wide"}"#), None);
    assert_eq!(count(r#"{"model_type":"t5","d_model":-1}"#), None);
    assert_eq!(count("[]"), None);
}
