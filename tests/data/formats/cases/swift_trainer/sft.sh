CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft \
    --model Qwen/Qwen3-8B --tuner_type lora --lora_rank 8 --target_modules all-linear \
    --torch_dtype bfloat16 --per_device_train_batch_size 1 --gradient_accumulation_steps 16 \
    --max_length 2048 --dataset mine --deepspeed zero2 --output_dir out
