//! What decoder layers keep where batches say which tokens are of an image, recorded by `tests/record/image_masks.py`: Gemma 3 then masks
//! attention to the whole sequence, which repeats keys and values for SDPA, and Gemma 4 does not.

use serde_json::Value;
use shardscope::operators::{Symbols, layer_operators};
use shardscope::source::Source;

use super::drafts::{flag, int, kept};
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/activations/image_masks.jsonl");

#[test]
fn masks_of_images_are_kept_where_the_model_has_them() {
    let mut lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let shapes = lines.next().expect("versions and shapes");
    let (mut layers, mut off) = (0, Vec::new());
    for case in lines {
        let name = case["model"].as_str().expect("a type");
        let mut text = shapes["text"].clone();
        for (key, value) in shapes["own"][name].as_object().expect("settings") {
            text[key] = value.clone();
        }
        text["model_type"] = format!("{name}_text").into();
        let config = serde_json::json!({
            "model_type": name, "text_config": text, "vision_config": shapes["vision"][name], "mm_tokens_per_image": 4,
        });
        let patches = if flag(&case, "told") { "16" } else { "0" };
        let set = [
            ("software", "hf_transformers"),
            ("seq_length", &int(&case, "s").to_string()),
            ("micro_batch_size", &int(&case, "b").to_string()),
            ("world_size", "1"),
            ("params_dtype", case["dtype"].as_str().expect("a type")),
            ("attn_implementation", "sdpa"),
            ("autocast", "none"),
            ("frozen_modules", "vision_tower multi_modal_projector"),
            ("image_patches", patches),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolved(&Source::from_files([("config.json", config.to_string().as_str())]), &set);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{name}: {:?}", resolution.diagnostics));
        let x = Symbols::new(&plan);
        for index in 0..plan.model().num_layers {
            let ours = kept(&x, &layer_operators(&x, plan.model().layer_kind(index)));
            if Some(ours) != case["kept"][format!("layer{index}")].as_u64() {
                off.push(format!("{case}, layer {index}: {ours}"));
            }
            layers += 1;
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
    assert_eq!(layers, 48);
}
