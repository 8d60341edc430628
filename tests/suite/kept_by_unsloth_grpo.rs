//! What the log-probabilities of unsloth's GRPO keep, compared with recorded runs of its own function
//! (`tests/record/unsloth_grpo.py`), and vLLM on the trained weights.

use serde_json::Value;
use shardscope::estimate::{PhaseKind, RlMemory, memory};
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Plan;
use shardscope::units::Bytes;

use super::drafts::int;
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/unsloth_grpo.jsonl");

fn plan(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "unsloth"),
        ("accelerator", "A100-SXM-40GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "2"),
        ("swiglu", "true"),
        ("hidden_size", "512"),
        ("ffn_hidden_size", "1024"),
        ("num_attention_heads", "8"),
        ("vocab_size", "32000"),
        ("untie_embeddings_and_output_weights", "true"),
        ("normalization", "RMSNorm"),
        ("position_embedding_type", "rope"),
        ("seq_length", "1024"),
        ("micro_batch_size", "4"),
        ("num_micro_batches", "1"),
        ("params_dtype", "bf16"),
        ("autocast", "bf16"),
        ("attn_implementation", "flash_attention_2"),
        ("train_type", "lora"),
        ("lora_rank", "8"),
        ("training_objective", "policy"),
        ("loss_kind", "torch"),
        ("rl_framework", "unsloth"),
        ("rollout_engine", "vllm"),
        ("rollouts_per_prompt", "4"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

#[test]
fn recorded_log_probabilities_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let rows = int(&case, "samples");
        let [length, response] =
            [int(&case, "tokens"), int(&case, "completion")].map(|all| (all / rows).to_string());
        let [samples, words, width] =
            ["samples", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let half = if case["dtype"] == "float16" { "fp16" } else { "bf16" };
        let plan = plan(&[
            ("micro_batch_size", &samples),
            ("rollouts_per_prompt", &samples),
            ("seq_length", &length),
            ("rollout_response", &response),
            ("vocab_size", &words),
            ("hidden_size", &width),
            ("params_dtype", half),
            ("autocast", half),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let ours: u64 = saved.iter().map(|saved| saved.bytes.get()).sum();
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(ours, kept, "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        for tensor in saved.iter().chain(transients.iter().flat_map(|moment| &moment.tensors)) {
            let value = evaluate(tensor.formula.expression, &|name| x.value(name));
            assert_eq!(tensor.bytes.get() as f64, value, "{}", tensor.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 12);
}

/// Tokens and vocabulary entries of a tile, what else the loss holds, and what is kept.
fn tile(set: &[(&str, &str)]) -> [u64; 4] {
    let plan = plan(set);
    let x = Symbols::new(&plan);
    let moments = Operator::OutputLayer.transients(&x);
    let beside = moments[0].tensors.iter().map(|tensor| tensor.bytes.get()).sum();
    let kept: u64 = Operator::OutputLayer.saved(&x).iter().map(|saved| saved.bytes.get()).sum();
    assert_eq!(moments[2].returned.get(), kept);
    [x.chunk_rows(), x.tile_words(), beside, kept]
}

#[test]
fn what_stands_beside_sampled_tokens_is_a_tile_of_their_logits() {
    // 600 sampled tokens of each of 4 sequences: the full vocabulary for as many tokens as have the logits of 512 with
    // 151,936 entries.
    let states = 2 * 512 * (4 * 1024 + 2400);
    let kept = 2400 * 512 * 2 + 4095;
    let rows = 2048;
    let beside = rows * (32_000 + 512) * 4 + states;
    assert_eq!(tile(&[("rollout_response", "600")]), [rows, 32_000, beside, kept]);
    // On devices of 24 GB and less, and with 4,096 tokens and more: part of the vocabulary for at most 4,096 tokens, if
    // it is larger than two tiles.
    assert_eq!(tile(&[("rollout_response", "600"), ("accelerator", "L4")]), [rows, 32_000, beside, kept]);
    let beside = 2400 * (16_384 + 512) * 4 + states;
    let wide = [("rollout_response", "600"), ("accelerator", "L4"), ("vocab_size", "32776")];
    assert_eq!(tile(&wide), [2400, 16_384, beside, kept]);
    let long = [("seq_length", "2048"), ("vocab_size", "128256")];
    assert_eq!(tile(&long)[..2], [4096, 16_384]);
    let [.., kept] = tile(&long);
    assert_eq!(kept, 4 * 2047 * 512 * 2 + 4 * 2048 - 1);
    // In fp16 the gradient is kept in fp32.
    let [.., kept] = tile(&[("params_dtype", "fp16"), ("autocast", "fp16"), ("accelerator", "T4")]);
    assert_eq!(kept, 4 * 1023 * 512 * 4 + 4 * 1024 - 1);
    assert_eq!(tile(&[("vocab_size", "151940"), ("rollout_response", "300")])[..2], [512, 151_944]);
}

#[test]
fn the_engine_runs_on_the_weights_that_train() {
    let awake = plan(&[("rollout_memory_fraction", "0.5")]);
    let estimate = memory(&awake);
    let rl = estimate.rl.expect("phases");
    let kinds: Vec<PhaseKind> = rl.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds, [PhaseKind::Training, PhaseKind::Rollout]);
    let held = Bytes::mib(20_480).less(rl.engine.weights);
    assert_eq!(rl.engine.kv_cache, held);
    // With about 20 GiB it decodes 80 sequences at once, with graphs of 2 MiB each.
    assert_eq!(rl.engine.graphs, Bytes::mib(160));
    let own = |rl: &RlMemory| {
        rl.phases[0].breakdown.child("training peak of the policy").expect("its peak").value()
    };
    assert_eq!(rl.phases[0].breakdown.value(), own(&rl) + held + Bytes::mib(160));
    let [generating] = &rl.phases[1..] else { panic!("two phases") };
    let labels: Vec<&str> = generating.breakdown.children().iter().map(|part| part.label()).collect();
    assert!(
        !labels.contains(&"engine weights") && !labels.contains(&"engine's driver context"),
        "{labels:?}"
    );
    // When asleep it only keeps its graphs, and unsloth chooses its share of memory: 0.9 of 40 GB, times 0.95.
    let standby = plan(&[("rollout_memory_fraction", "0.5"), ("rollout_sleep", "true")]);
    let rollout = standby.recipe().rollout.expect("rollouts");
    assert!((rollout.fraction - 0.9 * 0.95).abs() < 1e-12);
    let rl = memory(&standby).rl.expect("phases");
    assert_eq!(rl.phases[0].breakdown.value(), own(&rl) + rl.engine.graphs);
    for (name, share) in [("T4", 0.8), ("L4", 0.825), ("A100-SXM-80GB", 0.925), ("RTX-5090", 0.9)] {
        let plan = plan(&[
            ("accelerator", name),
            ("params_dtype", "fp16"),
            ("autocast", "fp16"),
            ("rollout_sleep", "true"),
        ]);
        let fraction = plan.recipe().rollout.map(|rollout| rollout.fraction);
        assert_eq!(fraction, Some(share * 0.95), "{name}");
    }
}
