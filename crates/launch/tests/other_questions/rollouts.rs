//! Reinforcement learning: what generates, what trains, and what its readers cannot say.

use super::{MODEL, script, stopped, value};
use shardscope_plan::{Field, Number};

#[test]
fn rollouts_are_counted_over_all_accelerators_of_the_cluster() {
    let text = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=$HOME/models/Qwen/Qwen3-8B \
        actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size=16 \
        actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=2";
    let resolution = script(text);
    // One driver is started; Ray puts workers on all of them. 16 sequences over 16 ranks are one each.
    let [world, micro, global] = [Field::WorldSize, Field::MicroBatchSize, Field::GlobalBatchSize]
        .map(|field| value(&resolution, field));
    assert_eq!([world.as_str(), &micro, &global], ["16", "1", "256"]);
    assert_eq!(value(&resolution, Field::NumLayers), "36");
}

#[test]
fn adapters_that_verl_loads_are_no_full_training() {
    let tuned = |more: &str| {
        script(&format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct \
             data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=256 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        ))
    };
    assert!(tuned("").plan.is_some());
    let key = "actor_rollout_ref.model.lora_adapter_path";
    assert!(tuned(&format!("{key}=null")).plan.is_some());
    stopped(&tuned(&format!("{key}=/saved/adapter")), &[key]);
    // The rank that is stated may be another than the adapter's own.
    stopped(&tuned(&format!("{key}=/saved/adapter actor_rollout_ref.model.lora_rank=32")), &[key]);
    let plain = "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \
        data.micro_batch_size_per_gpu=4 model.partial_pretrain=Qwen/Qwen2.5-7B";
    assert!(script(plain).plan.is_some());
    stopped(
        &script(&format!("{plain} model.lora_adapter_path=/saved/adapter")),
        &["model.lora_adapter_path"],
    );
}

#[test]
fn files_of_fsdp_and_trainers_of_verl_are_told_by_name() {
    let swift = "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft --model Qwen/Qwen3-8B --tuner_type full --max_length 2048 \
        --gradient_accumulation_steps 1 --per_device_train_batch_size 1 --fsdp";
    let file = script(&format!("{swift} ./examples/fsdp2.json"));
    assert!(file.plan.is_none() && file.questions.iter().any(|question| question.name == "zero_stage"));
    stopped(&script(&format!("{swift} ./activation_cpu_offload/fsdp2.json")), &["fsdp"]);
    assert_eq!(value(&script(&format!("{swift} fsdp2")), Field::DataParallelEngine), "fsdp2");
    let tuned = script(
        "torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \
         data.prompt_key=extra_info data.micro_batch_size_per_gpu=4 model.partial_pretrain=Qwen/Qwen2.5-7B trainer.project_name=p",
    );
    let shown = [Field::Software, Field::MicroBatchSize, Field::GlobalBatchSize, Field::SeqLength]
        .map(|field| value(&tuned, field));
    assert_eq!(shown, ["hf_transformers", "4", "256", "1024"]);
    // `MixedPrecision(reduce_dtype=torch.float32)` of verl/trainer/fsdp_sft_trainer.py, as in its fsdp_workers.py.
    let plan = tuned.plan.expect("a plan");
    assert_eq!([plan.recipe().module_dtype(), plan.recipe().reduce_dtype()], [Number::Bf16, Number::Fp32]);
}

#[test]
fn adapters_of_reinforcement_learning_under_megatron_are_megatron_bridges() {
    let miles = |more: &str| {
        format!(
            "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate {MODEL} \
             --hf-checkpoint /root/Qwen3-8B --num-rollout 100 --rollout-batch-size 32 --n-samples-per-prompt 8 \
             --use-dynamic-batch-size --max-tokens-per-gpu 9216 --rollout-num-gpus-per-engine 1 \
             --sglang-mem-fraction-static 0.4 --attention-backend flash --lora-rank 32 --lora-alpha 32 --lora-dropout 0.0 \
             --target-modules all-linear --advantage-estimator grpo --entropy-coef 0.00 {more}"
        )
    };
    let read = script(&miles(""));
    let shown = [Field::AdapterLibrary, Field::TrainType, Field::OffloadBetweenPhases]
        .map(|field| value(&read, field));
    assert_eq!(shown, ["megatron-bridge", "lora", "weights optimizer"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::NotRead), "");
    let canonical = script(&miles("--lora-type canonical_lora"));
    assert_eq!(value(&canonical, Field::AdapterLibrary), "megatron-bridge-canonical");
    stopped(&script(&miles("--exclude-modules o_proj")), &["exclude-modules"]);
    // PPO's estimator brings a critic, and is no matter of sampling.
    assert_eq!(value(&script(&miles("").replace("grpo", "ppo")), Field::NotRead), "--advantage-estimator");
    let verl = |more: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2-7B \
             actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 \
             trainer.nnodes=1 data.max_prompt_length=512 data.max_response_length=512 \
             actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.model.lora.rank=64 \
             actor_rollout_ref.model.lora.alpha=128 actor_rollout_ref.model.lora.lora_A_init_method=kaiming {more}"
        )
    };
    let read = script(&verl(""));
    let shown = [Field::AdapterLibrary, Field::LoraRank, Field::LoraAlpha].map(|field| value(&read, field));
    assert_eq!(shown, ["megatron-bridge", "64", "128"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    stopped(
        &script(&verl("actor_rollout_ref.model.lora.type=vlm_lora")),
        &["actor_rollout_ref.model.lora.type"],
    );
}
