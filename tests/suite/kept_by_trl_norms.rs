//! What 4-bit models keep whose norms are in fp32 beside embeddings in bf16, as TRL's trainers left them and QLoRA's program
//! does, compared with recorded runs: equal to the byte.

use serde_json::{Value, json};
use shardscope::estimate::memory;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::{Plan, Recompute};
use shardscope::source::Source;

use super::drafts::{flag, int, kept};
use super::formats::resolved;
use super::recorded::{Recorded, formulas};

/// `tests/record/trl_norms.py`.
const RECORDED: &str = include_str!("../data/activations/trl_norms.jsonl");

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

fn plan_of(case: &Value) -> Plan {
    let word = |key: &str| case[key].as_str().unwrap_or_default();
    let config = json!({
        "model_type": word("arch"), "num_hidden_layers": int(case, "layers"), "hidden_size": int(case, "h"),
        "intermediate_size": int(case, "f"), "num_attention_heads": int(case, "a"),
        "num_key_value_heads": int(case, "k"), "head_dim": int(case, "d"), "vocab_size": int(case, "V"),
        "max_position_embeddings": 512, "tie_word_embeddings": false, "sliding_window": null,
        "use_sliding_window": false,
    });
    // The second micro-batch of a step finds the gradients of the first one.
    let [batch, length, step] =
        [int(case, "b"), int(case, "s"), 2 * int(case, "b")].map(|size| size.to_string());
    let dropout = case["lora_dropout"].to_string();
    let targets = match word("train") {
        "qlora-all" => "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj",
        _ => "q_proj v_proj",
    };
    let set = [
        ("software", "hf_transformers"),
        ("accelerator", "H100-SXM"),
        ("world_size", "1"),
        ("global_batch_size", step.as_str()),
        ("micro_batch_size", batch.as_str()),
        ("seq_length", length.as_str()),
        ("params_dtype", "bf16"),
        ("bf16", "true"),
        ("autocast", "bf16"),
        ("train_type", "qlora"),
        ("base_quantization", "nf4"),
        ("upcast_non_quantized", "true"),
        ("upcast_norms", if flag(case, "casts") { "true" } else { "false" }),
        ("input_require_grads", if case["gc"].is_string() { "true" } else { "false" }),
        ("gradient_checkpointing", if case["gc"].is_string() { "true" } else { "false" }),
        ("adapter_dtype", if case["program"] == "qlora" { "bf16" } else { "fp32" }),
        ("lora_rank", "8"),
        ("lora_dropout", dropout.as_str()),
        ("lora_target_modules", targets),
        ("attn_implementation", word("attn")),
        ("padding_mask", if flag(case, "padded") { "true" } else { "false" }),
    ];
    let set: Vec<_> = set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let read = resolved(&Source::from_files([("config.json", config.to_string().as_str())]), &set);
    assert!(read.not_modelled.is_empty(), "{}: {:?}", case["id"], read.not_modelled);
    read.plan.unwrap_or_else(|| panic!("{}: {:?}", case["id"], read.diagnostics))
}

#[test]
fn norms_in_fp32_beside_embeddings_in_16_bits_are_met_to_the_byte() {
    let mut recorded = Recorded::default();
    for case in cases() {
        let plan = plan_of(&case);
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let checkpointed = plan.recipe().recompute != Recompute::None;
        // What the first layer gets from the embedding is in the embedding's format; a checkpoint of it is counted in fp32.
        let first = if flag(&case, "casts") { 2 } else { x.width };
        formulas(&case, &x, &operators);
        formulas(&case, &x.in_first_trained_layer(), &operators);
        let mut check = |part: &str, ours: u64| recorded.check(&case, part, ours);
        for index in 0..plan.model().num_layers {
            let ours = match index {
                0 if checkpointed => x.n * x.h * first,
                _ if checkpointed => x.n * x.h * x.residual_width,
                0 => kept(&x.in_first_trained_layer(), &operators),
                _ => kept(&x, &operators),
            };
            check(&format!("layer{index}"), ours);
        }
        check("shared", if checkpointed { 0 } else { 2 * x.s * x.rotated * first });
        // The Trainer passes the number of labels too, one int64, which the recorded call does not.
        let outside = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        check("outside", outside - 8);
    }
    assert!(recorded.equal() > 100);
}

/// Norms in fp32, embedding and output layer in bf16.
#[test]
fn weights_of_two_formats_are_met_to_the_byte() {
    for case in cases() {
        let totals = memory(&plan_of(&case)).ranks[0].totals;
        let mut held = int(&case, "trained_param_bytes") + int(&case, "frozen_param_bytes");
        // bitsandbytes casts biases to the compute dtype in the first forward pass (`nn/modules.py:Linear4bit.forward`); they stay
        // counted in fp32.
        if case["arch"] == "qwen2" {
            held += 2 * int(&case, "layers") * int(&case, "d") * (int(&case, "a") + 2 * int(&case, "k"));
        }
        assert_eq!(totals.parameters.get(), held, "{}: weights", case["id"]);
        assert_eq!(totals.gradients.get(), int(&case, "grad_bytes"), "{}: gradients", case["id"]);
    }
}
