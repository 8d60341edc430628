//! What litgpt's modules keep where FSDP shards them, recomputed by `finetune_full` or compiled by `pretrain`, and the size of
//! the shards, compared with recorded runs: equal to the byte.

use serde_json::{Value, json};
use shardscope::estimate::memory;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::{DataEngine, NumberFormat, Plan, Recompute};
use shardscope::source::Source;

use super::drafts::{int, kept};
use super::formats::resolved;
use super::recorded::{Recorded, formulas};

/// `tests/record/litgpt_sharded.py`.
const RECORDED: &str = include_str!("../data/activations/litgpt_sharded.jsonl");

fn cases() -> impl Iterator<Item = Value> {
    RECORDED.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON"))
}

/// The plan that the settings file of a recorded run gives, with the sizes of its model beside it.
fn plan_of(case: &Value) -> Plan {
    let pretrains = case["program"] == "pretrain";
    let [batch, length] = ["b", "s"].map(|key| int(case, key));
    let (model, more) = match case["arch"].as_str().expect("an architecture") {
        "qwen2" => ("qwen2", json!({"use_sliding_window": false})),
        "qwen3" | "heads" => ("qwen3", json!({"attention_bias": false})),
        "gemma" => ("gemma", json!({"hidden_activation": "gelu_pytorch_tanh"})),
        "window" => ("mistral", json!({"sliding_window": 100})),
        _ => ("llama", json!({})),
    };
    let mut config = json!({
        "model_type": model, "num_hidden_layers": int(case, "layers"), "hidden_size": int(case, "h"),
        "intermediate_size": int(case, "f"), "num_attention_heads": int(case, "a"),
        "num_key_value_heads": int(case, "k"), "head_dim": int(case, "d"), "vocab_size": int(case, "V"),
        "max_position_embeddings": 2 * length, "tie_word_embeddings": false,
    });
    let settings = config.as_object_mut().expect("a map");
    settings.extend(more.as_object().expect("a map").clone());
    let (name, own) = if pretrains { ("model_name", "tokenizer_dir: t\n") } else { ("checkpoint_dir", "") };
    let precision = case["precision"].as_str().expect("a precision");
    let text = format!(
        "{name}: Llama-3.2-1B\n{own}precision: {precision}\ndevices: 2\nnum_nodes: 1\ntrain:\n  global_batch_size: {}\n  \
         micro_batch_size: {batch}\n  max_seq_length: {length}\n",
        2 * batch
    );
    let source = Source::from_files([
        (
            "run.sh",
            format!("litgpt {} --config run.yaml\n", case["program"].as_str().expect("a program")).as_str(),
        ),
        ("run.yaml", text.as_str()),
        ("config.json", config.to_string().as_str()),
    ]);
    let groups = int(case, "k").to_string();
    // What the named model has goes before what a configuration beside it leaves open.
    let norms = if model == "qwen3" { "true" } else { "false" };
    let set = [("accelerator", "H100-SXM"), ("num_query_groups", groups.as_str()), ("qk_layernorm", norms)];
    let read = resolved(&source, &set.map(|(name, value)| (name.to_owned(), value.to_owned())));
    read.plan.unwrap_or_else(|| panic!("{}: {:?} {:?}", case["id"], read.diagnostics, read.not_modelled))
}

#[test]
fn sharded_layers_are_met_to_the_byte() {
    let mut recorded = Recorded::default();
    for case in cases() {
        let plan = plan_of(&case);
        assert_eq!(plan.model().hidden_size, int(&case, "h"), "{}", case["id"]);
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let mut check = |part: &str, ours: u64| recorded.check(&case, part, ours);
        for index in 0..plan.model().num_layers {
            let whole = plan.recipe().recompute != Recompute::None;
            check(&format!("layer{index}"), if whole { x.n * x.h * x.width } else { kept(&x, &operators) });
        }
        check("shared", 0);
        let outside = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        // A known gap: the factor of Gemma's embedding.
        check("outside", outside + if case["arch"] == "gemma" { x.width } else { 0 });
        formulas(&case, &x, &operators);
    }
    assert!(recorded.equal() > 100);
}

/// Shards in fp32 under mixed precision, which FSDP gathers, and whose gradients it reduces, in 16 bits.
#[test]
fn shards_are_met_to_the_byte() {
    for case in cases() {
        let plan = plan_of(&case);
        let recipe = plan.recipe();
        assert_eq!(recipe.transformers.engine, DataEngine::Fsdp1, "{}", case["id"]);
        let of = |key: &str| match case[key].as_str() {
            Some("bfloat16") => NumberFormat::Bf16,
            Some("float32") => NumberFormat::Fp32,
            other => panic!("{key} {other:?}"),
        };
        assert_eq!(recipe.params_dtype, of("param_dtype"), "{}", case["id"]);
        assert_eq!(recipe.grads_dtype, of("grad_dtype"), "{}", case["id"]);
        assert_eq!(recipe.reduce_dtype(), of("reduce_dtype"), "{}", case["id"]);
        let totals = memory(&plan).ranks[0].totals;
        let ours = [totals.parameters, totals.optimizer].map(|bytes| bytes.get());
        let theirs = ["param_bytes", "adamw_moment_bytes"].map(|key| int(&case, key));
        assert_eq!(ours, theirs, "{}", case["id"]);
    }
}
