//! Adapters on all linear layers, by PEFT's own keyword and by the names that trainers list.

use serde_json::json;
use shardscope::estimate::parameters;
use shardscope::source::Source;

use crate::formats::resolved;

/// Trained parameters of PEFT 0.21.2 with transformers 5.23.0 and torch 2.15.0 for small models with random weights:
/// `LoraConfig(r=4, target_modules=…)` with `"all-linear"`, and with the names returned by LLaMA-Factory's
/// `find_all_linear_modules`.
#[test]
fn experts_have_no_names_that_a_trainer_could_list() {
    let small = json!({
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "vocab_size": 128, "tie_word_embeddings": false,
    });
    let cases = [
        (json!({"model_type": "llama"}), 7_424, 7_424),
        (
            json!({"model_type": "qwen3_moe", "moe_intermediate_size": 48, "num_experts": 4, "num_experts_per_tok": 2,
                "decoder_sparse_step": 1, "mlp_only_layers": []}),
            17_952,
            3_584,
        ),
        (json!({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}), 25_632, 3_584),
        // Shared experts have names, by which PEFT also selects experts; the router has none.
        (
            json!({"model_type": "deepseek_v3", "moe_intermediate_size": 48, "n_routed_experts": 4, "n_shared_experts": 1,
                "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "q_lora_rank": 16,
                "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16}),
            11_088,
            10_816,
        ),
    ];
    for (own, word, names) in cases {
        let mut config = small.clone();
        config.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let text = config.to_string();
        for (by_names, expected) in [("false", word), ("true", names)] {
            let overrides = [
                ("software", "hf_transformers"),
                ("train_type", "lora"),
                ("lora_rank", "4"),
                ("lora_target_modules", "all-linear"),
                ("lora_by_names", by_names),
                ("seq_length", "32"),
                ("micro_batch_size", "1"),
                ("world_size", "1"),
                ("bf16", "true"),
                ("pad_vocab_size", "false"),
            ];
            let overrides: Vec<_> =
                overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &overrides);
            let plan = resolution.plan.unwrap_or_else(|| panic!("{text}: {:?}", resolution.diagnostics));
            assert_eq!(parameters(&plan).trained.get(), expected, "{own} by names: {by_names}");
        }
    }
}
