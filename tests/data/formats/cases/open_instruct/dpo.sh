# After https://github.com/allenai/open-instruct/blob/main/scripts/train/olmo3/32b_instruct_dpo.sh
uv run python mason.py \
    --cluster ai2/jupiter --image $IMAGE --pure_docker_mode --num_nodes 8 --gpus 8 -- accelerate launch \
    --mixed_precision bf16 --num_processes 64 --num_machines 8 \
    --use_deepspeed --deepspeed_config_file configs/ds_configs/stage3_no_offloading_accelerate.conf \
    open_instruct/dpo_tune_cache.py \
    --model_name_or_path Qwen/Qwen2.5-32B --tokenizer_name Qwen/Qwen2.5-32B --max_seq_length 8192 \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --learning_rate 1e-6 --gradient_checkpointing
