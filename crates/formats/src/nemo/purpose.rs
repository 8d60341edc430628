//! Which of NeMo 1's files train a decoder, recognized by their keys: its launcher also has conversions, evaluations
//! and image models (NVIDIA/NeMo-Framework-Launcher, `launcher_scripts/conf`).

use crate::leaves::Leaves;
use crate::{Effect, NotModelled};
use shardscope_plan::Field;

/// The prefix of a key, and what a file with such a key does instead.
const INSTEAD: [(&str, &str); 38] = [
    ("inference.", IDLE),
    ("infer.", IDLE),
    ("edit.", IDLE),
    ("indexing.", IDLE),
    ("quantization.", IDLE),
    ("run.eval_name", IDLE),
    ("run.nemo_file_name", IDLE),
    ("run.fine_tuning_dir", IDLE),
    ("ground_truth_file_path", IDLE),
    ("image_path", IDLE),
    ("data_path", IDLE),
    ("generate_images", IDLE),
    ("model.mm_cfg.", "a vision model in addition to the decoder"),
    ("model.vision_pretraining_type", IMAGES),
    ("model.vision.", IMAGES),
    ("model.unet", DIFFUSION),
    ("model.unet_config.", DIFFUSION),
    ("model.first_stage_config.", DIFFUSION),
    ("model.first_stage_key", DIFFUSION),
    ("nerf.", IMAGES),
    ("mesh_fname", IMAGES),
    ("model.mcore_t5", ENCODER),
    ("model.encoder.", ENCODER),
    ("model.mcore_bert", OTHER),
    ("model.bert_binary_head", OTHER),
    ("model.retro.", RETRO),
    ("model.mcore_retro", RETRO),
    ("retro.", RETRO),
    // NeMo-Aligner (`examples/nlp/gpt/conf`), whose supervised fine-tuning is NeMo's own.
    ("model.dpo.", ALIGNS),
    ("model.kto.", ALIGNS),
    ("model.ppo.", ALIGNS),
    ("model.reinforce.", ALIGNS),
    ("model.rs.", ALIGNS),
    ("model.spin.", ALIGNS),
    ("model.knowledge_distillation.", ALIGNS),
    ("model.reward_model_type", ALIGNS),
    ("model.output_sequence", ALIGNS),
    ("model.reward_standardization.", ALIGNS),
];
const ALIGNS: &str = "reinforcement learning or preference training, and the models that it holds";
const IDLE: &str = "a script for generation, evaluation or conversion, not for training";
const IMAGES: &str = "an image model in place of the decoder";
const DIFFUSION: &str = "a diffusion model in place of the decoder";
const ENCODER: &str = "encoder-decoder models";
const OTHER: &str = "a model other than a decoder-only language model";
const RETRO: &str = "retrieval in addition to the decoder (Retro)";

/// Reports what the file does if it does not train a decoder.
pub(super) fn instead(leaves: &mut Leaves<'_>) {
    let all = leaves.all();
    let has = |start: &str| all.iter().any(|leaf| leaf.path.starts_with(start));
    // A training may also configure generation between steps.
    let trains = has("model.optim.") || has("model.data.train_ds.");
    // A model that is restored and has no optimizer (NeMo-Aligner's `compute_topk_logits.yaml`); a file that
    // this one builds on may have one.
    let restored = all.iter().find(|leaf| leaf.path == "model.restore_from_path");
    if let Some(leaf) = restored.filter(|_| !trains && !has("optim") && !has("defaults")) {
        let item = NotModelled::new(&leaf.path, "", Effect::Model, IDLE).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
        return;
    }
    for (start, what) in INSTEAD {
        if what == IDLE && trains {
            continue;
        }
        if let Some(leaf) = all.iter().find(|leaf| leaf.path.starts_with(start)) {
            let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
            leaves.pass_below(&[start]);
            return;
        }
    }
}

/// NeMo 1's adapters (`model.peft.peft_scheme`), with frozen weights. The file has the sizes of
/// every kind, whichever is selected.
pub(super) fn adapters(leaves: &mut Leaves<'_>) {
    let scheme = leaves.get("model.peft.peft_scheme");
    if let Some(leaf) = scheme.filter(|leaf| !matches!(leaf.value.as_str(), "none" | "null" | "sft")) {
        if leaf.value == "lora" {
            leaves.say(Field::TrainType, "lora", leaf);
        } else {
            let what = "adapters on frozen weights in NeMo 1; all weights would be counted as trained";
            let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
    leaves.pass_below(&["model.peft."]);
}
