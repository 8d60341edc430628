set -x
NODES=2
python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes $NODES --ref_num_gpus_per_node 8 \
   --actor_num_nodes $NODES --actor_num_gpus_per_node 8 \
   --vllm_num_engines 4 --vllm_tensor_parallel_size 4 --colocate_all_models \
   --vllm_gpu_memory_utilization 0.6 --enforce_eager --vllm_enable_sleep --deepspeed_enable_sleep \
   --pretrain /models/Qwen3-8B --remote_rm_url /workspace/reward.py \
   --advantage_estimator group_norm --init_kl_coef 1e-3 --use_kl_loss \
   --micro_train_batch_size 2 --train_batch_size 128 --micro_rollout_batch_size 4 --rollout_batch_size 32 \
   --n_samples_per_prompt 8 --prompt_max_len 1024 --generate_max_len 3072 \
   --zero_stage 3 --bf16 --flash_attn --packing_samples --gradient_checkpointing \
   --actor_learning_rate 5e-7 --save_path out --use_wandb key
