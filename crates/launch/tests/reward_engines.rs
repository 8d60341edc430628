//! Reward models that verl's reward loop serves by an engine (`verl/experimental/reward_loop/reward_model.py`).

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Residence, RewardModel, RolloutEngine, Served};
use shardscope_source::Source;

fn run(more: &str) -> Resolution {
    let text = format!(
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
         actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
         actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
    );
    let source = Source::from_files([("run.sh", text.as_str())]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn reward(more: &str) -> Option<RewardModel> {
    let read = run(more);
    let plan = read.plan.unwrap_or_else(|| panic!("{more}: {:?} {:?}", read.not_modelled, read.diagnostics));
    plan.recipe().beside.reward.as_deref().cloned()
}

/// After `examples/ppo_trainer/run_qwen2-7b_rm_reward_loop_colocate.sh` of verl 0.7, and the keys of 0.8.
#[test]
fn an_engine_on_the_same_accelerators_takes_its_share() {
    let old = "reward_model.enable=True reward_model.use_reward_loop=True reward_model.rollout.name=sglang \
               reward_model.rollout.gpu_memory_utilization=0.8 reward_model.rollout.tensor_model_parallel_size=1 \
               reward_model.model.path=Qwen/Qwen2.5-3B reward_model.micro_batch_size_per_gpu=32";
    let own = reward(old).map(|own| (own.model.num_layers, own.residence, own.served));
    let engine = |engine, fraction, tensor| Some(Served { engine, fraction, tensor });
    assert_eq!(own, Some((36, Residence::Engine, engine(RolloutEngine::Sglang, 0.8, 1))));
    let new = "reward.reward_model.enable=True reward.reward_model.rollout.name=vllm \
               reward.reward_model.model_path=Qwen/Qwen2.5-3B";
    let own = reward(new).map(|own| (own.model.num_layers, own.residence, own.served));
    assert_eq!(own, Some((36, Residence::Engine, engine(RolloutEngine::Vllm, 0.5, 2))));
    // Sharded by itself, so also beside Megatron.
    let cut = "actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2";
    assert!(reward(&format!("{new} {cut}")).is_some());
}

#[test]
fn an_engine_of_its_own_accelerators_is_elsewhere() {
    for group in ["reward.reward_model", "reward_model"] {
        let apart = format!(
            "{group}.enable=True {group}.enable_resource_pool=True {group}.n_gpus_per_node=8 {group}.nnodes=1 \
             {group}.rollout.name=vllm {group}.model_path=acme/own"
        );
        assert_eq!(reward(&apart), None, "{group}");
    }
}

#[test]
fn what_an_engine_does_otherwise_stops() {
    let stops = |more: &str| {
        let start = "reward.reward_model.enable=True reward.reward_model.model_path=Qwen/Qwen2.5-3B";
        let read = run(&format!("{start} reward.reward_model.rollout.{more}"));
        read.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    for key in
        ["name=trtllm", "enforce_eager=False", "free_cache_engine=False", "quantization=fp8", "dtype=float32"]
    {
        let name = key.split('=').next().unwrap_or_default();
        assert_eq!(stops(key), [format!("reward.reward_model.rollout.{name}")], "{key}");
    }
}
