#!/bin/bash
#SBATCH --job-name=tr99-1B
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=1          # one task per node: the launcher starts the rest
#SBATCH --cpus-per-task=40
#SBATCH --gres=gpu:8                 # GPUs of a node
#SBATCH --time 20:00:00
#SBATCH --output=%x-%j.out

set -x -e
source $six_ALL_CCFRWORK/start-prod
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
GPUS_PER_NODE=8
NNODES=$SLURM_NNODES
TP_SIZE=1
MICRO_BATCH_SIZE=8
ZERO_STAGE=1
config_json="./ds_config.$SLURM_JOBID.json"

# Deepspeed figures out GAS dynamically from dynamic GBS via set_train_batch_size()
cat <<EOT > $config_json
{
  "train_micro_batch_size_per_gpu": $MICRO_BATCH_SIZE,
  "train_batch_size": 512,
  "zero_optimization": { "stage": $ZERO_STAGE }
}
EOT

export LAUNCHER="python -u -m torch.distributed.run \
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES \
    --rdzv_endpoint $MASTER_ADDR:6000 \
    --max_restarts 0 \
    "
export CMD=" \
    `pwd`/pretrain_gpt.py \
    --tensor-model-parallel-size $TP_SIZE \
    --pipeline-model-parallel-size 1 \
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
    --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size $MICRO_BATCH_SIZE --rampup-batch-size 32 32 2_000_000 --global-batch-size 512 \
    --fp16 \
    --deepspeed --deepspeed_config ${config_json} --zero-stage ${ZERO_STAGE} \
    "
echo $CMD
srun --jobid $SLURM_JOBID bash -c '$LAUNCHER --node_rank $SLURM_PROCID $CMD' 2>&1 | tee -a main_log.txt
