//! Adapters of a word embedding, compared with PEFT's own module.

use serde_json::Value;

use super::drafts::int;
use super::finetuning::{plan, resolved};
use shardscope::estimate::parameters;
use shardscope::operators::{Operator, Symbols};

/// PEFT's adapter of a word embedding: its weights and what it keeps, to the byte as recorded
/// (`tests/data/activations/embedding_adapters.jsonl`).
#[test]
fn an_adapter_of_the_word_embedding_is_looked_up() {
    let recorded = include_str!("../data/activations/embedding_adapters.jsonl");
    for line in recorded.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes =
            ["samples", "tokens", "rank", "hidden", "vocabulary"].map(|name| int(&case, name).to_string());
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("lora_rank", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("vocab_size", &sizes[4]),
            ("make_vocab_size_divisible_by", "1"),
            ("train_type", "lora"),
            ("lora_target_modules", "embed_tokens"),
            ("autocast", if case["autocast"] == true { "bf16" } else { "none" }),
            ("adapter_dtype", case["adapters"].as_str().expect("a format")),
        ]);
        let x = Symbols::new(&plan);
        let mut kept: Vec<u64> =
            Operator::Embedding.saved(&x).iter().map(|saved| saved.bytes.get()).collect();
        kept.sort_unstable();
        let theirs: Vec<u64> =
            case["kept"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
        assert_eq!(kept, theirs, "{line}");
        let trained = case["trained"].as_object().expect("shapes").values();
        let elements: u64 = trained
            .map(|shape| shape.as_array().expect("sizes").iter().filter_map(Value::as_u64).product::<u64>())
            .sum();
        assert_eq!(parameters(&plan).trained.get(), elements);
        // The first layer's input has a gradient, which that of a frozen embedding has not.
        assert!(plan.recipe().tuning.reaches_input());
    }
    // Not where the output layer's adapter would be of the same weights, nor in other trainers' modules.
    let adapted =
        [("train_type", "lora"), ("lora_rank", "8"), ("lora_target_modules", "embed_tokens lm_head")];
    assert!(resolved(&adapted).not_modelled.is_empty());
    for other in
        [("untie_embeddings_and_output_weights", "false"), ("use_dora", "true"), ("software", "torchtune")]
    {
        let mut set: Vec<_> = adapted.to_vec();
        set.push(other);
        assert!(!resolved(&set).not_modelled.is_empty(), "{other:?}");
    }
}
