#!/bin/bash
# Options in strings over many lines, some of them commented out around the string.
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
NNODES=4   # of the large kind
NODE_RANK=${NODE_RANK:-0}
MASTER_ADDR=${MASTER_ADDR:-"localhost"}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))

TP=4
PP=`expr 2 + 2`
# TP=8

DISTRIBUTED_ARGS="
    --nproc_per_node $GPUS_PER_NODE \
    --nnodes $NNODES \
    --node_rank $NODE_RANK \
    --master_addr $MASTER_ADDR
"

SP_ARG=""
if [ $TP -gt 1 ]; then
    SP_ARG="--sequence-parallel"
fi

GPT_ARGS="
    --tensor-model-parallel-size $TP \
    --pipeline-model-parallel-size=${PP} \
    --num-layers 48 \
    --hidden-size $((64 * 128)) \
    --num-attention-heads 64 \
    --seq-length 4096 --max-position-embeddings 4096 \
    --micro-batch-size 2 \
    --global-batch-size $((WORLD_SIZE / TP / PP * 2 * 16)) \
    --train-samples 9_765_625 \
    --bf16 $SP_ARG
"

torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS \
    --distributed-backend nccl 2>&1 | tee "logs/$(date +%F)_$(hostname).log"
