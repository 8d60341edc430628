python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2-7B \
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 trainer.nnodes=1 trainer.n_gpus_per_node=8 data.train_batch_size=256
