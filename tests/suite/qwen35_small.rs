//! Sizes of the small Qwen 3.5 models in the catalog, compared with the adapters that unsloth's notebooks counted on
//! the models themselves: rank 16 on every linear layer of decoder and tower, excluding the projector
//! (unslothai/notebooks@bdda2efc7ad5, `nb/Qwen3_5_(0_8B)_Vision.ipynb` and the two similar ones, "Trainable
//! parameters").

use serde_json::Value;

use super::drafts::int;

const MODELS: &str = include_str!("../../crates/catalog/src/models.tsv");
const RANK: u64 = 16;
const COUNTED: [(&str, u64); 3] =
    [("Qwen/Qwen3.5-0.8B", 13_181_952), ("Qwen/Qwen3.5-2B", 23_110_656), ("Qwen/Qwen3.5-4B", 38_756_352)];

/// Input and output columns of all linear layers of the decoder.
fn decoder(text: &Value) -> u64 {
    let of = |key: &str| int(text, key);
    let (h, f, d) = (of("hidden_size"), of("intermediate_size"), of("head_dim"));
    let (a, k) = (of("num_attention_heads") * d, of("num_key_value_heads") * d);
    // Queries with their gate, keys, values, output.
    let full = (h + 2 * a) + 2 * (h + k) + (a + h);
    let keys = of("linear_num_key_heads") * of("linear_key_head_dim");
    let heads = of("linear_num_value_heads");
    let values = heads * of("linear_value_head_dim");
    // Queries, keys and values, the gate, two numbers per head, output.
    let linear = (h + 2 * keys + values) + (h + values) + 2 * (h + heads) + (values + h);
    let layers = of("num_hidden_layers");
    let attention = layers / of("full_attention_interval");
    attention * full + (layers - attention) * linear + layers * 3 * (h + f)
}

/// The same for the tower: queries, keys and values, output, two in the MLP.
fn tower(vision: &Value) -> u64 {
    let (h, f) = (int(vision, "hidden_size"), int(vision, "intermediate_size"));
    int(vision, "depth") * ((h + 3 * h) + 2 * h + 2 * (h + f))
}

#[test]
fn adapters_are_as_many_as_notebooks_counted() {
    for (name, counted) in COUNTED {
        let row = MODELS.lines().find(|row| row.split([' ', '\t']).next() == Some(name)).expect("a row");
        let config: Value = serde_json::from_str(row.split('\t').nth(3).expect("cells")).expect("JSON");
        let columns = decoder(&config["text_config"]) + tower(&config["vision_config"]);
        assert_eq!(RANK * columns, counted, "{name}");
    }
}
