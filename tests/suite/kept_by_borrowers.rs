//! What is held when backward begins where checkpointed layers borrow keys and values of earlier ones (Gemma 4 E2B and E4B), recorded
//! by `tests/record/borrowed_keys.py`: the container of keys and values keeps them alive, whichever kind of checkpoint it is.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols};
use shardscope::source::Source;

use super::drafts::{flag, int, kept};
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/activations/borrowed_keys.jsonl");

#[test]
fn keys_and_values_that_later_layers_borrow_wait_with_the_inputs_of_checkpoints() {
    let mut lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut config = lines.next().expect("versions and shape")["shape"].clone();
    config["model_type"] = "gemma4_text".into();
    let text = config.to_string();
    let (mut runs, mut off) = (0, Vec::new());
    for case in lines {
        let adapts = case["adapts"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let adapts: Vec<&str> = adapts.chain(case["adapts"].as_str()).collect();
        let joined = adapts.join(" ");
        let mut set = vec![
            ("software", "hf_transformers".to_owned()),
            ("seq_length", int(&case, "s").to_string()),
            ("micro_batch_size", int(&case, "b").to_string()),
            ("world_size", "1".to_owned()),
            ("params_dtype", case["dtype"].as_str().expect("a type").to_owned()),
            ("autocast", case["autocast"].as_str().unwrap_or("none").to_owned()),
            ("attn_implementation", case["attn"].as_str().expect("a kernel").to_owned()),
            ("recompute_granularity", "full".to_owned()),
            ("recompute_method", "uniform".to_owned()),
            ("recompute_num_layers", "1".to_owned()),
            ("reentrant_checkpoints", flag(&case, "reentrant").to_string()),
        ];
        if !adapts.is_empty() {
            set.extend(
                [
                    ("train_type", "lora"),
                    ("adapter_library", "peft"),
                    ("lora_rank", "8"),
                    ("lora_dropout", "0"),
                    ("input_require_grads", "true"),
                    ("lora_target_modules", &joined),
                ]
                .map(|(name, value)| (name, value.to_owned())),
            );
        }
        let set: Vec<_> = set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &set);
        let plan = resolution.plan.expect("a plan");
        let x = Symbols::new(&plan);
        let (full, layers) = (x.whole(), plan.model().num_layers);
        // Token ids are no floating point. Cosines and sines of both kinds of attention, and masks of eager attention, are arguments of
        // checkpoints; the last layer's result is what the head reads, of which the final norm keeps a copy in fp32.
        let ids = if adapts.is_empty() { 8 * x.n } else { 0 };
        let tables = 2 * x.s * (x.rotated + full.rotated) * x.width;
        let masks = if case["attn"] == "eager" { 2 * x.b * x.s * x.s * x.width } else { 0 };
        let inputs = layers * x.n * x.h * x.width;
        let ends = kept(&x, &[Operator::Embedding, Operator::LayerInputs, Operator::FinalNorm]);
        let ours = inputs + ends + tables + masks - ids;
        let hidden = x.n * x.h * x.width;
        if ours + hidden != int(&case, "kept") {
            off.push(format!("{case}: {} off", int(&case, "kept") as i64 - (ours + hidden) as i64));
        }
        let lent: u64 = Operator::LayerInputs
            .saved(&x)
            .iter()
            .filter(|saved| saved.name.starts_with("borrowed"))
            .map(|saved| saved.bytes.get())
            .sum();
        assert_eq!(lent, int(&case, "borrowed"), "{case}");
        runs += 1;
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
    assert_eq!(runs, 20);
}

/// The table of all layers' embeddings is in the list of no layer (`_no_split_modules`): FSDP's root unit has it, gathered until
/// backward is over, and DeepSpeed gathers it for its own module. Its gradient is laid out once more to be reduced.
#[test]
fn the_table_of_all_layers_is_whole_where_weights_are_sharded() {
    let lines: Vec<&str> = RECORDED.lines().take(1).collect();
    let mut config = serde_json::from_str::<Value>(lines[0]).expect("JSON")["shape"].clone();
    config["model_type"] = "gemma4_text".into();
    let text = config.to_string();
    // Rows, layers, width.
    let table = 1000 * 8 * 24;
    // How often it is gathered for its own module, forward and backward, and its gradient laid out once more.
    for (engine, stage, ranks, gathered, reduced) in [
        ("deepspeed", "3", 8, 2, 1),
        ("fsdp2", "3", 8, 0, 1),
        ("deepspeed", "2", 8, 0, 0),
        ("deepspeed", "3", 1, 0, 0),
    ] {
        let set = [
            ("software", "hf_transformers"),
            ("seq_length", "64"),
            ("micro_batch_size", "1"),
            ("world_size", &i32::to_string(&ranks)),
            ("params_dtype", "bf16"),
            ("bf16", "true"),
            ("data_parallel_engine", engine),
            ("zero_stage", stage),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &set);
        let plan = resolution.plan.expect("a plan");
        let x = Symbols::new(&plan);
        let moments = Operator::LayerInputs.transients(&x);
        let bytes = |name: &str| -> u64 {
            let of = moments.iter().flat_map(|moment| &moment.tensors).filter(|tensor| tensor.name == name);
            of.map(|tensor| tensor.bytes.get()).sum()
        };
        assert_eq!(bytes("gradient of all layers' table"), 2 * table, "{engine} {stage}");
        assert_eq!(
            bytes("gathered table of all layers"),
            gathered * 2 * table,
            "{engine} {stage}, {ranks} ranks"
        );
        let width = plan.recipe().reduce_dtype().width();
        assert_eq!(
            bytes("the same as it is reduced"),
            reduced * width * table,
            "{engine} {stage}, {ranks} ranks"
        );
    }
}
