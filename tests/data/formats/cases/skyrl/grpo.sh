# After https://github.com/NovaSky-AI/SkyRL/blob/main/examples/train/megatron/run_megatron_lora_qwen3-30b-a3b.sh
NUM_GPUS=8
TP=4
uv run --isolated --extra megatron -m skyrl.train.entrypoints.main_base \
  trainer.algorithm.advantage_estimator="grpo" \
  trainer.policy.model.path="Qwen/Qwen3-30B-A3B" \
  trainer.policy.model.lora.rank=64 \
  trainer.policy.model.lora.alpha=128 \
  trainer.placement.colocate_all=false \
  trainer.placement.policy_num_nodes=2 \
  trainer.placement.policy_num_gpus_per_node=$NUM_GPUS \
  trainer.strategy=megatron \
  trainer.policy.megatron_config.tensor_model_parallel_size=$TP \
  trainer.policy.megatron_config.expert_model_parallel_size=8 \
  trainer.policy.megatron_config.expert_tensor_parallel_size=1 \
  trainer.train_batch_size=128 \
  trainer.policy_mini_batch_size=64 \
  trainer.micro_train_batch_size_per_gpu=4 \
  trainer.max_prompt_length=512 \
  trainer.algorithm.use_kl_loss=false \
  generator.max_input_length=3072 \
  generator.sampling_params.max_generate_length=1024 \
  generator.n_samples_per_prompt=5 \
  generator.inference_engine.num_engines=2 \
  generator.inference_engine.tensor_parallel_size=8 \
  generator.inference_engine.gpu_memory_utilization=0.6 \
  trainer.logger="console" \
  $@
