# After https://github.com/OpenRLHF/OpenRLHF/blob/3c3be623/examples/scripts/train_ppo_ray_hybrid_engine.sh
python3 -m openrlhf.cli.train_ppo_ray \
   --ref.num_nodes 1 --ref.num_gpus_per_node 8 --actor.num_nodes 1 --actor.num_gpus_per_node 8 \
   --vllm.num_engines 4 --vllm.tensor_parallel_size 2 --train.colocate_all --vllm.gpu_memory_utilization 0.5 \
   --actor.model_name_or_path meta-llama/Meta-Llama-3-8B --reward.remote_url reward_func.py \
   --train.batch_size 128 --train.micro_batch_size 2 --rollout.batch_size 1024 --rollout.n_samples_per_prompt 8 \
   --data.max_len 2048 --ds.zero_stage 3 --ds.param_dtype bf16 --algo.kl.init_coef 0.01 \
   --actor.gradient_checkpointing_enable --ds.packing_samples --vllm.enforce_eager --vllm.enable_sleep --ds.enable_sleep
