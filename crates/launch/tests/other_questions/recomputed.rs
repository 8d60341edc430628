//! Which of PyTorch's checkpoint implementations recomputes layers: stated by the text, or the default of its trainer.

use super::{said, script, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

const FACTORY: &str = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\nfinetuning_type: lora\n\
    lora_target: all\ndataset: alpaca\ntemplate: qwen\ncutoff_len: 2048\nbf16: true\n";
const AXOLOTL: &str = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\nbf16: true\n\
    gradient_checkpointing: true\ndatasets:\n  - path: a\n    type: alpaca\n";
const TRAINER: &str = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True \
    --model_max_length 2048 --per_device_train_batch_size 1 --gradient_checkpointing True --output_dir out";
const SWIFT: &str = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B --train_type lora --dataset a --torch_dtype bfloat16 \
    --max_length 2048";

#[track_caller]
fn is_reentrant(read: &Resolution) -> bool {
    let reentrant = read.plan.as_ref().map(|plan| plan.recipe().transformers.reentrant_checkpoints);
    assert_eq!(Some(value(read, Field::ReentrantCheckpoints) == "true"), reentrant, "{:?}", read.diagnostics);
    reentrant == Some(true)
}

fn file(text: &str) -> Resolution {
    said("train.yaml", text, &[("world_size", "8")])
}

#[test]
fn each_trainer_has_its_own_default() {
    assert!(is_reentrant(&file(FACTORY)));
    assert!(!is_reentrant(&file(&format!("{FACTORY}use_reentrant_gc: false\n"))));
    assert!(is_reentrant(&file(AXOLOTL)));
    assert!(!is_reentrant(&file(&format!(
        "{AXOLOTL}gradient_checkpointing_kwargs:\n  use_reentrant: false\n"
    ))));
    assert!(!is_reentrant(&script(SWIFT)));
    assert!(is_reentrant(&script(&format!("{SWIFT} --deepspeed zero2"))));
}

#[test]
fn transformers_has_the_other_kind_since_release_5() {
    assert!(!is_reentrant(&script(TRAINER)));
    assert!(is_reentrant(&script(&format!("{TRAINER} --torch_dtype bfloat16 --evaluation_strategy no"))));
    for (json, reentrant) in [("true", true), ("True", true), ("false", false)] {
        let line = format!("{TRAINER} --gradient_checkpointing_kwargs '{{\"use_reentrant\": {json}}}'");
        assert_eq!(is_reentrant(&script(&line)), reentrant, "{line}");
    }
}

#[test]
fn the_default_is_a_setting_only_where_layers_are_recomputed() {
    for (whose, recomputed) in [
        (AXOLOTL.replace("gradient_checkpointing: true\n", ""), false),
        (AXOLOTL.to_owned(), true),
        (format!("{FACTORY}disable_gradient_checkpointing: true\n"), false),
        (FACTORY.to_owned(), true),
    ] {
        let read = file(&whose);
        let shown = value(&read, Field::ReentrantCheckpoints);
        assert_eq!(shown == "true", recomputed, "{whose}: {shown}");
        // The plan still contains it: a layout that recomputes is estimated as the trainer would run it.
        let plan = read.plan.as_ref().expect("a plan");
        assert!(plan.recipe().transformers.reentrant_checkpoints, "{whose}");
    }
    // A value stated by the text is a setting in any case.
    let script = AXOLOTL
        .replace("gradient_checkpointing: true\n", "gradient_checkpointing_kwargs:\n  use_reentrant: true\n");
    assert_eq!(value(&file(&script), Field::ReentrantCheckpoints), "true");
}
