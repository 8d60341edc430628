//! Trainers that are recognised by their files but not modelled are named, even if their keys also occur in other
//! formats.

use shardscope_bash::Environment;
use shardscope_launch::{Request, read};
use shardscope_source::Source;

#[test]
fn a_trainer_that_is_not_modelled_is_called_by_its_own_name() {
    let texts = [
        (
            "VeOmni",
            "model: {model_path: Qwen/Qwen3-8B}\ntrain: {accelerator: {ulysses_size: 1}, micro_batch_size: 1}\n",
        ),
        ("VeOmni", "model: {config_path: Qwen/Qwen3-8B}\ntrain: {data_parallel_mode: fsdp2, lr: 1e-4}\n"),
        (
            "ArcticTraining",
            "type: sft\nmicro_batch_size: 1\nmodel: {name_or_path: Qwen/Qwen3-8B}\ndeepspeed: {}\n",
        ),
        ("mistral-finetune", "model_id_or_path: /m\nseq_len: 32768\nlora: {rank: 64}\nrun_dir: /r\n"),
        ("H2O LLM Studio", "llm_backbone: Qwen/Qwen3-8B\ntraining: {batch_size: 2}\n"),
        (
            "Ludwig",
            "model_type: llm\nbase_model: Qwen/Qwen3-8B\ninput_features: [{name: a}]\noutput_features: [{name: b}]\n",
        ),
        ("align-anything", "train_cfgs: {bf16: true}\nmodel_cfgs: {model_name_or_path: Qwen/Qwen3-8B}\n"),
        (
            "ChatLearn",
            "runtime_args: {train_backend: fsdp}\nmodels: {policy_trainer: {load: Qwen/Qwen3-8B}}\n",
        ),
        (
            "PipelineRL",
            "model_path: Qwen/Qwen3-8B\nworld: {actor_fraction: 4}\nfinetune: {seq_length: 4096}\n",
        ),
    ];
    for (trainer, text) in texts {
        let source = Source::from_files([("config.yaml", text)]);
        let environment = Environment::default();
        let resolution = read(&Request { source: &source, environment: &environment, overrides: &[] });
        assert!(resolution.plan.is_none(), "{trainer}");
        let named: Vec<_> = resolution.not_modelled.iter().filter(|item| item.name == "framework").collect();
        assert_eq!(named.iter().map(|item| item.value.as_str()).collect::<Vec<_>>(), [trainer], "{text}");
    }
}
