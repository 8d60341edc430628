//! Every number that an agent hands in or gets says what it counts, and an answer what it is of.

use rmcp::Json;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::schemars::JsonSchema;
use serde_json::{Value, json};

use super::{BRIDGED, Tools};

/// Calls `told` with the path and description of each property of `schema`, and of what it refers to, that is a number or a map of
/// numbers.
fn numbers(schema: &Value, path: &str, told: &mut impl FnMut(&str, &str)) {
    match schema {
        Value::Object(keys) => {
            for (name, property) in keys.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if is_number(property) || property.get("additionalProperties").is_some_and(is_number) {
                    let about = property.get("description").and_then(Value::as_str).unwrap_or_default();
                    told(&format!("{path}.{name}"), about);
                }
            }
            for (key, inner) in keys {
                numbers(inner, &format!("{path}/{key}"), told);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| numbers(item, path, told)),
        _ => {}
    }
}

fn is_number(schema: &Value) -> bool {
    let is = |kind: &Value| kind == "number" || kind == "integer";
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => false,
    }
}

#[test]
fn every_number_of_every_tool_has_its_unit() {
    let (mut seen, mut bare) = (0, Vec::new());
    for tool in Tools::tool_router().list_all() {
        let output = tool.output_schema.clone().map(|schema| Value::Object((*schema).clone()));
        let schemas = [Value::Object((*tool.input_schema).clone()), output.unwrap_or_default()];
        for (side, schema) in ["in", "out"].iter().zip(schemas) {
            numbers(&schema, &format!("{} {side}", tool.name), &mut |path, about| {
                seen += 1;
                let lower = about.to_lowercase();
                if !lower.contains("unit: ") && !lower.contains("share") {
                    bare.push(format!("{path}: {about:?}"));
                }
            });
        }
    }
    assert!(seen > 40, "{seen} numbers");
    assert!(bare.is_empty(), "{bare:#?}");
}

#[test]
fn a_number_without_a_unit_is_noticed() {
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "its form alone is looked at")]
    struct Bare {
        /// How long.
        step: Option<f64>,
        /// Unit: byte.
        peak: u64,
        words: Vec<String>,
    }
    let schema = rmcp::schemars::schema_for!(Bare).to_value();
    let mut found = Vec::new();
    numbers(&schema, "", &mut |path, about| found.push((path.to_owned(), about.to_owned())));
    let expected = [(".step", "How long."), (".peak", "Unit: byte.")];
    assert_eq!(found, expected.map(|(path, about)| (path.to_owned(), about.to_owned())));
}

#[test]
fn adapters_on_a_script_of_megatron_lm_are_named_as_megatron_bridges() {
    const SCRIPT: &str = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 \
        --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 \
        --vocab-size 50304 --bf16";
    let of = |settings: Value| {
        let input = json!({ "text": SCRIPT, "settings": settings, "limit": 1 });
        let found = Tools.search(Parameters(serde_json::from_value(input).expect("a call")));
        found.map(|Json(found)| found.note)
    };
    assert_eq!(of(json!({})), Ok(None));
    let refused = of(json!({ "train_type": "lora" })).expect_err("adapters that Megatron-LM has not");
    assert!(refused.contains("set adapter_library to megatron-bridge as well"), "{refused}");
    let bridged = json!({ "train_type": "lora", "adapter_library": "megatron-bridge" });
    assert_eq!(of(bridged), Ok(Some(BRIDGED)));
}
