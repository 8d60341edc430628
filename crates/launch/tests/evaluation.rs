//! Evaluation in larger batches than training's has no formula, and no verdict either.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_source::Source;

const TRAINER: &str = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --max_seq_length 4096 --bf16 \
    --per_device_train_batch_size 2 --gradient_accumulation_steps 4";

fn said(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn stops(resolution: &Resolution, name: &str) -> bool {
    resolution.not_modelled.iter().any(|item| item.is_called(name))
}

#[test]
fn a_trainer_that_evaluates_in_larger_batches_stops() {
    let run = |more: &str| said("run.sh", &format!("{TRAINER} {more}\n"));
    let larger = "per_device_eval_batch_size";
    assert!(stops(&run("--eval_strategy steps --per_device_eval_batch_size 4"), larger));
    assert!(stops(&run("--evaluation_strategy epoch --per_device_eval_batch_size 4"), larger));
    assert!(stops(&run("--do_eval True --per_device_eval_batch_size 4"), larger));
    // transformers evaluates in eights where nothing is said.
    assert!(stops(&run("--eval_strategy steps"), "eval_strategy"));
    for harmless in [
        "",
        "--per_device_eval_batch_size 4",
        "--eval_strategy no --per_device_eval_batch_size 4",
        "--eval_strategy steps --per_device_eval_batch_size 2",
    ] {
        assert!(!stops(&run(harmless), larger) && !stops(&run(harmless), "eval_strategy"), "{harmless}");
    }
}

#[test]
fn torchtune_that_validates_in_larger_batches_stops() {
    let run = |validation: &str| {
        let text = format!(
            "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\n\
             tokenizer: {{_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 2048}}\n\
             optimizer: {{_component_: torch.optim.AdamW}}\nbatch_size: 2\ndtype: bf16\n{validation}"
        );
        stops(&said("full.yaml", &text), "batch_size_val")
    };
    assert!(run("batch_size_val: 4\n"));
    assert!(!run("batch_size_val: 2\n") && !run(""));
}
