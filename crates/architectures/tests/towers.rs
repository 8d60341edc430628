//! Parameters of vision towers and projectors: against the library's own counts (`beside` in `data/transformers.jsonl`),
//! and with the language model against the totals that released checkpoints state.

use shardscope_architectures::{Architecture, Tower};
use shardscope_config_tree::{Node, read_json};

const LINES: &str = include_str!("data/transformers.jsonl");

/// The vision configuration that the library builds where none is written: the lines of `transformers.jsonl` that write none
/// were counted with it. The sizes here were not read from the library's source; its counts, met to the digit beside language
/// models of several widths, are what holds them.
const DEFAULTS: [(&str, &str); 12] = [
    (
        "qwen2_vl",
        r#"{"depth":32,"embed_dim":1280,"hidden_size":3584,"mlp_ratio":4,"in_channels":3,"patch_size":14}"#,
    ),
    ("qwen2_5_vl", r#"{"depth":32,"hidden_size":3584,"intermediate_size":3420,"out_hidden_size":3584}"#),
    ("qwen3_vl", QWEN3),
    ("qwen3_vl_moe", QWEN3),
    ("qwen3_5", QWEN3),
    ("qwen3_5_moe", QWEN3),
    ("llava", CLIP_LARGE),
    ("llava_next", CLIP_LARGE),
    (
        "gemma3",
        r#"{"model_type":"siglip_vision_model","hidden_size":768,"intermediate_size":3072,"num_hidden_layers":12,"image_size":224,"patch_size":16}"#,
    ),
    ("mistral3", PIXTRAL),
    (
        "internvl",
        r#"{"hidden_size":1024,"num_hidden_layers":24,"intermediate_size":4096,"image_size":[448,448],"patch_size":[14,14]}"#,
    ),
    (
        "llama4",
        r#"{"hidden_size":768,"num_hidden_layers":34,"intermediate_size":5632,"vision_output_dim":7680,"image_size":448,"patch_size":14,"projector_input_dim":4096,"projector_output_dim":4096}"#,
    ),
];
const QWEN3: &str = r#"{"depth":27,"hidden_size":1152,"intermediate_size":4304,"patch_size":16,"out_hidden_size":3584,"num_position_embeddings":2304,"deepstack_visual_indexes":[8,16,24]}"#;
const CLIP_LARGE: &str = r#"{"model_type":"clip_vision_model","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":24,"image_size":336,"patch_size":14}"#;
const PIXTRAL: &str = r#"{"model_type":"pixtral","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":24,"image_size":1540,"patch_size":14}"#;

fn text<'n>(node: &'n Node, key: &str) -> &'n str {
    node.get(key).and_then(Node::text).unwrap_or_default()
}

/// What is read of `config`, JSON, with the vision configuration `vision` in it.
fn with_vision(config: &str, vision: &str) -> Architecture {
    let open = config.trim().strip_prefix('{').unwrap_or_else(|| panic!("a JSON object"));
    let written = format!(r#"{{"vision_config":{vision},{open}"#);
    Architecture::read(&read_json(&written, 0).documents[0]).unwrap_or_else(|why| panic!("{why:?}"))
}

#[test]
fn towers_count_as_the_library_counts_them() {
    let mut met = [0; DEFAULTS.len()];
    for line in LINES.lines() {
        let node = read_json(line, 0).documents.remove(0);
        let config = node.get("config").unwrap_or_else(|| panic!("a configuration"));
        let states_none = config.get("vision_config").is_none_or(|vision| vision.entries().is_empty());
        let Some(at) = DEFAULTS.iter().position(|(known, _)| *known == text(config, "model_type")) else {
            continue;
        };
        if !states_none {
            continue;
        }
        let (_, json) = line
            .split_once(r#""config": "#)
            .or(line.split_once(r#""config":"#))
            .unwrap_or_else(|| panic!("a configuration"));
        let read = with_vision(&balanced(json), DEFAULTS[at].1);
        let counted = read.tower.map(|tower| tower.parameters);
        assert_eq!(counted, node.get("beside").and_then(Node::whole), "{}", text(&node, "name"));
        met[at] += 1;
    }
    assert!(met.iter().all(|lines| *lines > 1), "each type with language models of several widths: {met:?}");
}

/// The object that `json` begins with.
fn balanced(json: &str) -> String {
    let mut depth = 0_u32;
    let end = json.find(|letter| {
        depth = match letter {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        };
        letter == '}' && depth == 0
    });
    json[..=end.unwrap_or_else(|| panic!("a whole object"))].to_owned()
}

/// Released models: their type, the keys of their language model, the sizes of their vision tower, and the parameters that the metadata of their checkpoint states (`safetensors.total` of the model's page):
/// all digits, which are met exactly, or rounded. The towers' sizes were not read from the models' `config.json`: the totals
/// hold them, to the digit but for InternVL3's, which is rounded.
const RELEASED: [(&str, &str, &str, u64); 6] = [
    (
        "Qwen/Qwen2.5-VL-7B-Instruct",
        r#"{"model_type":"qwen2_5_vl","tie_word_embeddings":false,"text_config":{"model_type":"qwen2_5_vl_text","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064}}"#,
        r#"{"depth":32,"hidden_size":1280,"intermediate_size":3420,"num_heads":16,"in_chans":3,"out_hidden_size":3584,"patch_size":14,"spatial_merge_size":2}"#,
        8_292_166_656,
    ),
    (
        "Qwen/Qwen3-VL-8B-Instruct",
        r#"{"model_type":"qwen3_vl","tie_word_embeddings":false,"text_config":{"model_type":"qwen3_vl_text","attention_bias":false,"head_dim":128,"hidden_size":4096,"intermediate_size":12288,"num_attention_heads":32,"num_hidden_layers":36,"num_key_value_heads":8,"vocab_size":151936}}"#,
        r#"{"depth":27,"hidden_size":1152,"intermediate_size":4304,"patch_size":16,"out_hidden_size":4096,"num_position_embeddings":2304,"deepstack_visual_indexes":[8,16,24]}"#,
        8_767_123_696,
    ),
    (
        "OpenGVLab/InternVL3-8B-hf",
        r#"{"model_type":"internvl","tie_word_embeddings":false,"text_config":{"model_type":"qwen2","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":151674}}"#,
        r#"{"model_type":"internvl_vision","attention_bias":true,"hidden_size":1024,"num_hidden_layers":24,"intermediate_size":4096,"image_size":[448,448],"patch_size":[14,14],"norm_type":"layer_norm","use_absolute_position_embeddings":true,"use_mean_pooling":true,"use_qk_norm":false,"use_mask_token":false}"#,
        // Its page rounds it: 7.94B.
        7_940_000_000,
    ),
    (
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        r#"{"model_type":"llama4","tie_word_embeddings":false,"text_config":{"model_type":"llama4_text"}}"#,
        r#"{"hidden_size":1408,"num_hidden_layers":34,"intermediate_size":5632,"vision_output_dim":4096,"image_size":336,"patch_size":14,"projector_input_dim":4096,"projector_output_dim":4096}"#,
        108_641_793_536,
    ),
    (
        "google/gemma-3-27b-it",
        r#"{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":5376,"intermediate_size":21504,"num_attention_heads":32,"num_hidden_layers":62,"num_key_value_heads":16,"head_dim":128}}"#,
        r#"{"model_type":"siglip_vision_model","hidden_size":1152,"image_size":896,"intermediate_size":4304,"num_attention_heads":16,"num_hidden_layers":27,"patch_size":14,"vision_use_head":false}"#,
        27_432_406_640,
    ),
    (
        "llava-hf/llava-1.5-7b-hf",
        r#"{"model_type":"llava","tie_word_embeddings":false,"text_config":{"model_type":"llama","vocab_size":32064}}"#,
        CLIP_LARGE,
        7_063_427_072,
    ),
];

#[test]
fn tower_and_language_model_are_the_published_total() {
    for (name, config, vision, published) in RELEASED {
        let read = with_vision(config, vision);
        let ours = read.parameters + read.tower.map_or(0, |tower| tower.parameters);
        let rounded = published.is_multiple_of(10_000_000);
        let allowed = if rounded { published / 1000 } else { 0 };
        assert!(ours.abs_diff(published) <= allowed, "{name}: {ours} of {published}");
    }
}

#[test]
fn a_tower_whose_sizes_are_not_written_is_not_counted() {
    let text = r#""text_config":{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100}"#;
    let read = |model_type: &str, vision: &str| -> Option<Tower> {
        with_vision(&format!(r#"{{"model_type":"{model_type}",{text}}}"#), vision).tower
    };
    assert!(read("llava", CLIP_LARGE).is_some());
    // What a catalog row keeps of it, another tower than the rules are of, a type without rules, sizes of no use.
    assert_eq!(read("llava", r#"{"model_type":"clip_vision_model"}"#), None);
    assert_eq!(read("llava", PIXTRAL), None);
    assert_eq!(read("vipllava", CLIP_LARGE), None);
    for layers in ["0", "-1", "99999999999", "\"many\"", "null"] {
        let vision =
            CLIP_LARGE.replace(r#""num_hidden_layers":24"#, &format!(r#""num_hidden_layers":{layers}"#));
        assert_eq!(read("llava", &vision), None, "{layers}");
    }
}
