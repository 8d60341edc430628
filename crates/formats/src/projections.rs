//! Linear layers of model types of transformers that are not called as Llama's are.

use shardscope_catalog as catalog;

/// A type's linear layers but for the output layer, by the last parts of their names (`transformers/models/*/modeling_*.py`,
/// transformers 5.24).
const LAYERS: [(&str, &[&str]); 15] = [
    ("phi", &["q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2"]),
    ("opt", &["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]),
    ("gptj", &["q_proj", "k_proj", "v_proj", "out_proj", "fc_in", "fc_out"]),
    ("gpt_neo", &["q_proj", "k_proj", "v_proj", "out_proj", "c_fc", "c_proj"]),
    ("codegen", &["qkv_proj", "out_proj", "fc_in", "fc_out"]),
    ("starcoder2", &["q_proj", "k_proj", "v_proj", "o_proj", "c_fc", "c_proj"]),
    ("gpt2", &["c_attn", "c_fc", "c_proj"]),
    ("gpt_bigcode", &["c_attn", "c_fc", "c_proj"]),
    ("mpt", &["Wqkv", "out_proj", "up_proj", "down_proj"]),
    ("phi3", &["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
    ("glm", &["q_proj", "k_proj", "v_proj", "o_proj", "gate_up_proj", "down_proj"]),
    ("glm4", &["q_proj", "k_proj", "v_proj", "o_proj", "gate_up_proj", "down_proj"]),
    ("falcon", FUSED),
    ("bloom", FUSED),
    ("gpt_neox", FUSED),
];

/// Those of types whose queries, keys and values are one layer, as BLOOM's.
const FUSED: &[&str] = &["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"];

/// The types of models whose rows in the catalog have none.
fn by_name(name: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 9] = [
        ("phi-1", "phi"),
        ("phi-2", "phi"),
        ("phi-3", "phi3"),
        ("phi-4", "phi3"),
        ("qwen3-30b-a3b", "qwen3_moe"),
        ("qwen3-235b-a22b", "qwen3_moe"),
        ("deepseek-v2", "deepseek_v2"),
        ("deepseek-v3", "deepseek_v3"),
        ("deepseek-r1", "deepseek_v3"),
    ];
    // Qwen's and Llama's layers.
    let distilled = name.contains("distill");
    STARTS.iter().find(|(start, _)| name.starts_with(start) && !distilled).map(|(_, word)| *word)
}

/// The type of a model of the catalog; of those under short names, which have none, by the name.
pub(crate) fn model_type(model: &str) -> Option<String> {
    let known = catalog::find(model.trim_end_matches('/')).model()?;
    if let Some(read) = known.architecture() {
        return Some(read.model_type);
    }
    let name = known.name().to_ascii_lowercase();
    by_name(&name).map(str::to_owned)
}

/// The linear layers of a model of the catalog; `None` where they are Llama's or not known.
pub(crate) fn of_model(model: &str) -> Option<&'static [&'static str]> {
    let kind = model_type(model)?;
    LAYERS.iter().find(|(known, _)| *known == kind).map(|(_, layers)| *layers)
}
