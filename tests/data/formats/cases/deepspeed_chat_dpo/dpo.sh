# After https://github.com/microsoft/DeepSpeedExamples/blob/93895f8f880e9c94cfac5ce0de8b0b52671fc989/applications/DeepSpeed-Chat/training/step2_dpo_finetuning/training_scripts/llama2/run_llama2_7b.sh
ZERO_STAGE=3
deepspeed --num_gpus 8 main.py --data_path Dahoas/rm-static --data_split 2,4,4 \
   --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 8 --max_seq_len 512 \
   --gradient_accumulation_steps 1 --lr_scheduler_type cosine --gradient_checkpointing \
   --zero_stage $ZERO_STAGE --deepspeed --offload --output_dir ./output_step2_llama_7b_epoch1_lr9.65e-6
