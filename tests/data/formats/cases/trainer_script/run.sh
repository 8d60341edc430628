deepspeed --num_gpus 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --deepspeed ds.json --bf16 True \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --model_max_length 4096 --gradient_checkpointing True \
  --num_train_epochs 3 --learning_rate 1e-5 --report_to none --output_dir out
