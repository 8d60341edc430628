# After https://github.com/microsoft/DeepSpeedExamples/blob/b563ff971d870f7b839e08faf833b286c4cf0fdb/applications/DeepSpeed-Chat/training/step2_dpo_finetuning/training_scripts/opt/single_node/run_350m.sh
# What the same options mean is told by the folder of main.py alone.
deepspeed --num_gpus 8 main.py --data_path Dahoas/rm-static --data_split 2,4,4 \
   --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 --max_seq_len 512 \
   --gradient_accumulation_steps 1 --lr_scheduler_type cosine --zero_stage 3 --deepspeed --output_dir ./output
