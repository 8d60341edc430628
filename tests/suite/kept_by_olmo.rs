//! What OLMo's own model and losses keep for backward, recorded by `tests/record/olmo_layers.py` (versions stand in the first
//! line of its output). A configuration of OLMo goes the whole way to the kept bytes.

use serde_json::{Value, json};
use shardscope::estimate::parameters;
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::source::Source;

use super::drafts::{int, kept};
use super::formula::evaluate;
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/activations/olmo.jsonl");

/// The configuration of a recorded case, on one GPU.
fn read(case: &Value) -> Resolution {
    let mut model = case["config"].clone();
    model["max_sequence_length"] = case["s"].clone();
    let config = json!({
        "model": model,
        "optimizer": {"name": "adamw"},
        "fsdp": {"wrapping_strategy": "by_block", "precision": "mixed"},
        "precision": "amp_bf16",
        "global_train_batch_size": case["b"],
        "device_train_microbatch_size": case["b"],
        "fused_loss": case["fused"],
        "softmax_auxiliary_loss": case["z"],
        "activation_checkpointing": case["checkpoint"],
        "compile": if case["compile"] == true { json!({"fullgraph": false}) } else { Value::Null },
    });
    let set = [("world_size", "1"), ("accelerator", "H100-SXM-80GB")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let text = config.to_string();
    resolved(&Source::from_files([("olmo.yaml", text.as_str())]), &set)
}

#[test]
fn recorded_blocks_are_met_to_the_byte() {
    let (mut layers, mut ends, mut wrong) = (0, 0, Vec::new());
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let resolution = read(&case);
        // What was recorded and has no formula stops by name.
        let auxiliary = case["z"] == true && case["fused"] == false;
        let unknown = auxiliary || case["checkpoint"] == "fine_grained" || id.contains("low precision");
        assert_eq!(!resolution.not_modelled.is_empty(), unknown, "{id}: {:?}", resolution.not_modelled);
        if unknown {
            continue;
        }
        let plan = resolution.plan.unwrap_or_else(|| panic!("{id}: {:?}", resolution.diagnostics));
        let x = Symbols::of(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let recompute = &plan.recipe().recompute;
        let recorded = |place: &str| case["kept"][place].as_u64().unwrap_or(0);
        let mut check = |place: &str, ours: u64, recorded: u64| {
            if ours != recorded {
                wrong.push(format!("{id}, {place}: {recorded} recorded, {ours} here"));
            }
        };
        let all = 0..plan.model().num_layers;
        for index in all.clone() {
            // The input of a checkpointed block stands with what is kept outside of blocks.
            let again = recompute.recomputes_layer(index, &all);
            let ours = if again { 0 } else { kept(&x, &operators) };
            let place = format!("layer{index}");
            check(&place, ours, recorded(&place));
            layers += 1;
        }
        let inputs = recompute.whole_layers(&all) * x.n * x.h * x.width;
        let outside = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        check("ends", outside + inputs, recorded("ends"));
        ends += 1;
        assert_eq!(parameters(&plan).total.get(), int(&case, "parameters"), "{id}");
        for saved in operators.iter().chain(&[Operator::OutputLayer]).flat_map(|one| one.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{id}: {}", saved.name);
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(layers >= 270 && ends >= 69, "{layers} {ends}");
}
