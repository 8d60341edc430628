//! A recomputed layer's peak compared with a recorded one (`tests/record/recomputed_layer.py`): it is at the end of its
//! recomputation, at the adapter of its last linear layer.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols};

use super::drafts::int;
use super::formula::evaluate;
use super::kept_by_llamafactory::plan;

const RECORDED: &str = include_str!("../data/activations/recomputed_layer.jsonl");

/// Upper bound for token ids and positions, in bytes per token. Unit: byte.
const SMALL: u64 = 8;

#[test]
fn recorded_ends_of_recomputation_are_met() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let names = ["hidden", "inner", "heads", "groups", "sequences", "tokens", "rank"];
        let [hidden, inner, heads, groups, sequences, tokens, rank] =
            names.map(|name| int(&case, name).to_string());
        let plan = plan(&[
            ("num_layers", "1"),
            ("hidden_size", &hidden),
            ("ffn_hidden_size", &inner),
            ("num_attention_heads", &heads),
            ("group_query_attention", "true"),
            ("num_query_groups", &groups),
            ("micro_batch_size", &sequences),
            ("seq_length", &tokens),
            ("params_dtype", "bf16"),
            ("autocast", "bf16"),
            ("train_type", "lora"),
            ("lora_rank", &rank),
            ("lora_dropout", "0"),
            ("lora_target_modules", "all-linear"),
            ("adapter_dtype", "fp32"),
            ("input_require_grads", "true"),
            ("gradient_checkpointing", "true"),
            ("attn_implementation", "sdpa"),
        ]);
        let x = Symbols::new(&plan).recomputed();
        let layer = [Operator::InputNorm, Operator::SelfAttention, Operator::PreMlpNorm, Operator::Mlp];
        let kept: u64 =
            layer.iter().flat_map(|operator| operator.saved(&x)).map(|saved| saved.bytes.get()).sum();
        let transients = Operator::Mlp.transients(&x);
        let moment = transients
            .iter()
            .find(|transient| transient.name == "down_proj's adapter in forward")
            .expect("a moment");
        for saved in &moment.tensors {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        // The layer's input, held by its checkpoint, in addition to the copy made by its norm; cosines and sines of all
        // layers.
        let ours = kept + moment.bytes().get() + 2 * x.n * x.h + 2 * 2 * x.s * x.d;
        let most = int(&case, "held_in_backward_at_most");
        // Matrices of the last adapter, cast by autocast.
        let casts = 2 * int(&case, "rank") * (int(&case, "hidden") + int(&case, "inner"));
        assert!(ours <= most && most <= ours + casts + SMALL * x.n, "{ours} for {line}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}
