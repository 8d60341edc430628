//! Rollouts by the model that trains: GRPO of TRL without vLLM.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Residence, Rollout, RolloutEngine};
use shardscope_source::Source;

/// philschmid/deep-learning-pytorch-huggingface `training/mini-deepseek-r1-aha-grpo.ipynb`, huggingface/trl
/// `examples/scripts/grpo_2048.py` in short.
fn resolved(model: &str, more: &str) -> Resolution {
    let text = format!(
        "from trl import GRPOConfig, GRPOTrainer\nargs = GRPOConfig(per_device_train_batch_size=4, gradient_accumulation_steps=8, \
         bf16=True, gradient_checkpointing=True, max_prompt_length=256, max_completion_length=1024, beta=0.001{more})\ntrainer = \
         GRPOTrainer(model='{model}', args=args, reward_funcs=[f], train_dataset=d)\ntrainer.train()\n"
    );
    let set = [("gpus_per_node", "1"), ("num_nodes", "1"), ("accelerator", "H100-SXM")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let source = Source::from_files([("grpo.py", text.as_str())]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

#[track_caller]
fn rollout(more: &str) -> Rollout {
    let resolution = resolved("Qwen/Qwen2.5-1.5B-Instruct", more);
    assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
    let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    plan.recipe().rollout.unwrap_or_else(|| panic!("no rollouts"))
}

#[test]
fn the_training_model_makes_a_steps_rollouts_at_once() {
    let read = rollout("");
    assert_eq!((read.engine, read.own_gpus, read.sleeps), (RolloutEngine::Transformers, None, true));
    assert_eq!((read.sequences, read.length, read.response, read.sampling), (4 * 8, 1280, 1024, 0));
    assert_eq!(read.reference, Residence::Device);
    assert_eq!(rollout(", use_vllm=False").engine, RolloutEngine::Transformers);
    assert_eq!(rollout(", use_vllm=True, vllm_mode='colocate'").engine, RolloutEngine::Vllm);
    assert_eq!(rollout(", steps_per_generation=2").sequences, 4 * 2);
    // Sorted and summed probabilities beside the scores that the temperature divides.
    assert_eq!(rollout(", temperature=0.9").sampling, 4);
    assert_eq!(rollout(", temperature=1.0, top_k=0, top_p=1.0").sampling, 0);
    assert_eq!(rollout(", temperature=0.9, top_p=0.95").sampling, 4 + 22);
    assert_eq!(rollout(", top_k=50").sampling, 5);
}

#[test]
fn what_it_would_hold_otherwise_stops_by_name() {
    let stopped = |model: &str, more: &str| -> Vec<String> {
        resolved(model, more).not_modelled.iter().map(|item| item.name.clone()).collect()
    };
    let qwen = "Qwen/Qwen2.5-1.5B-Instruct";
    for (more, name) in [
        (", use_transformers_paged=True", "use_transformers_paged"),
        (", cache_implementation='static'", "cache_implementation"),
        (", repetition_penalty=1.1", "repetition_penalty"),
        (", generation_batch_size=64", "generation_batch_size"),
        (", use_vllm=arguments.use_vllm", "use_vllm"),
    ] {
        assert!(stopped(qwen, more).iter().any(|item| item == name), "{more}: {:?}", stopped(qwen, more));
    }
    // 32 sequences on one accelerator.
    assert!(stopped(qwen, ", num_generations=5").iter().any(|item| item == "rollouts_per_prompt"));
    assert!(stopped(qwen, ", num_generations=16").is_empty());
    // Layers of another kind: experts; norms after attention and MLP, and windows.
    for model in ["Qwen/Qwen3-30B-A3B", "google/gemma-2-2b-it"] {
        assert!(stopped(model, "").iter().any(|item| item == "rollout_engine"), "{:?}", stopped(model, ""));
    }
}
