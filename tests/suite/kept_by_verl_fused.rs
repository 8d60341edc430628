//! verl's fused output layer (`use_fused_kernels`), compared with recorded calls of its function
//! (`tests/record/verl_fused.py`).

use serde_json::Value;
use shardscope::estimate::PhaseKind;
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Plan;
use shardscope::units::Bytes;

use super::drafts::int;
use super::formula::evaluate;
use super::rollouts::{VOCABULARY, WIDTH, part, plan as rollouts, rl};

fn plan(case: &Value) -> Plan {
    plan_of(case, "policy_rows")
}

/// A case's plan with this output layer.
pub(crate) fn plan_of(case: &Value, loss: &str) -> Plan {
    let [tokens, hidden, vocabulary] =
        ["tokens", "hidden", "vocabulary"].map(|name| int(case, name).to_string());
    let entropy = if case["entropy"] == true { "true" } else { "false" };
    let mut set = vec![
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("num_layers", "4"),
        ("hidden_size", hidden.as_str()),
        ("ffn_hidden_size", "128"),
        ("num_attention_heads", "8"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("bf16", "true"),
        ("make_vocab_size_divisible_by", "1"),
        ("software", "hf_transformers"),
        ("seq_length", &tokens),
        ("micro_batch_size", "1"),
        ("vocab_size", &vocabulary),
        ("loss_kind", loss),
        ("attn_implementation", "flash_attention_2"),
        ("autocast", "none"),
        ("packing", "true"),
        ("training_objective", "policy"),
        ("rl_framework", "verl"),
        ("policy_entropy", entropy),
    ];
    if case["trains"] == false {
        set.extend([("train_type", "lora"), ("lora_rank", "8"), ("lora_target_modules", "q_proj")]);
    }
    let settings: Vec<_> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Kept tensors and what either pass makes, to the byte: no logits are kept, and a chunk's gradients live until the next
/// one's are there.
#[test]
fn the_fused_output_layer_holds_what_was_recorded() {
    const RECORDED: &str = include_str!("../data/activations/verl_fused.jsonl");
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let plan = plan(&case);
        let x = Symbols::new(&plan);
        let [tokens, hidden] = ["tokens", "hidden"].map(|name| int(&case, name));
        // The states and the tokens were there before, and nothing else is kept.
        let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
        assert_eq!(kept, 2 * tokens * hidden + 8 * tokens + int(&case, "kept"), "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let most = |names: &[&str]| {
            let moments = transients.iter().filter(|one| names.contains(&one.name));
            let bytes = moments.map(|one| {
                for saved in &one.tensors {
                    let value = evaluate(saved.formula.expression, &|name| x.value(name));
                    assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
                }
                one.bytes().get()
            });
            bytes.max().expect("a moment")
        };
        assert_eq!(most(&["loss"]), int(&case, "forward"), "{line}");
        assert_eq!(most(&["loss"]), int(&case, "scored"), "{line}");
        let backward = most(&["backward of the loss", "backward of the output layer"]);
        assert_eq!(backward, int(&case, "backward"), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 48);
}

/// A pass of log-probabilities makes as many logits at once as in training, however many tokens it has.
#[test]
fn log_probabilities_of_the_fused_output_layer_have_a_chunk_of_logits() {
    let of = |more: &[(&str, &str)]| {
        let set = [("packing", "true"), ("loss_kind", "policy_rows"), ("evaluation_batch_size", "16")];
        rl(&rollouts(&set.iter().chain(more).copied().collect::<Vec<_>>()))
    };
    // Few tokens: the logits of 512 of them are the most.
    let few = of(&[("log_prob_tokens", "5000"), ("evaluation_batch_size", "1"), ("seq_length", "1024")]);
    assert_eq!(part(&few, PhaseKind::LogProbs, "logits of a chunk"), Some(Bytes::new(16 * 512 * VOCABULARY)));
    assert_eq!(part(&few, PhaseKind::LogProbs, "last hidden states"), Some(Bytes::new(2 * 5000 * WIDTH)));
    // Many: the last layer's MLP.
    let many = of(&[]);
    assert_eq!(part(&many, PhaseKind::LogProbs, "MLP"), Some(Bytes::new(3 * 2 * 16 * 2048 * 2816)));
}
