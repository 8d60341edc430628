#!/bin/sh
#$ -l rt_AF=4
#$ -l h_rt=5:00:00
#$ -cwd
source /etc/profile.d/modules.sh
module load cuda/12.1
export NUM_GPU_PER_NODE=8
NUM_NODES=$NHOSTS
NUM_GPUS=$((${NUM_NODES} * ${NUM_GPU_PER_NODE}))
mkdir -p ./hostfile
HOSTFILE_NAME=./hostfile/hostfile_${JOB_ID}
while read -r hostname rest; do
  echo "${hostname} slots=${NUM_GPU_PER_NODE}"
done <"$SGE_JOB_HOSTLIST" >"$HOSTFILE_NAME"
mpirun -np $NUM_GPUS \
  --npernode $NUM_GPU_PER_NODE \
  -hostfile $HOSTFILE_NAME \
  -x MASTER_ADDR=$MASTER_ADDR -bind-to none \
  python pretrain_gpt.py \
  --tensor_model_parallel_size 2 --pipeline_model_parallel_size 2 \
  --num_layers 40 --hidden_size 5120 --num_attention_heads 40 \
  --seq_length 4096 --max_position_embeddings 4096 \
  --micro_batch_size 1 --global_batch_size 1024 --bf16
