#!/bin/bash
# After https://github.com/meta-llama/llama-cookbook/blob/main/getting-started/finetuning/multi_node.slurm
#SBATCH --nodes=2
#SBATCH --gpus-per-task=4
srun torchrun --nproc_per_node 4 --rdzv_id $RANDOM --rdzv_backend c10d --rdzv_endpoint $head_node_ip:29500 ./finetuning.py \
    --enable_fsdp --use_peft --peft_method lora --model_name meta-llama/Llama-3.1-8B
