# After https://github.com/microsoft/DeepSpeedExamples/tree/master/applications/DeepSpeed-Chat/training/step1_supervised_finetuning
ZERO_STAGE=3
deepspeed --num_gpus 8 main.py \
   --data_path Dahoas/rm-static Dahoas/full-hh-rlhf --data_split 2,4,4 \
   --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 --max_seq_len 512 \
   --gradient_accumulation_steps 8 --lr_scheduler_type cosine --gradient_checkpointing \
   --zero_stage $ZERO_STAGE --deepspeed --output_dir ./output_step1_llama2_7b
