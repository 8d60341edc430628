#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes 2-4
#SBATCH --gpus-per-node=a100:4
NODES=$(scontrol show hostnames $SLURM_JOB_NODELIST | wc -l)
GPUS=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
CORES=$(nproc --all)
NODE_RANK=$(cat /etc/rank)
HEAD=$(hostname -I | awk '{print $1}')
FIRST=`echo "a b c" | cut -d' ' -f2`
export OMP_NUM_THREADS=$((CORES / GPUS))
GBS=$((NODES * GPUS * 16))
srun torchrun --nnodes $NODES --nproc_per_node $GPUS --node_rank $NODE_RANK --master_addr $HEAD \
  pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
  --micro-batch-size 2 --global-batch-size $GBS --tensor-model-parallel-size 2 --tag $FIRST
