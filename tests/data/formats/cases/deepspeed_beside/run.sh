#!/bin/bash
MICRO=2
deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --micro-batch-size $MICRO --global-batch-size 64 --fp16 \
  --deepspeed --deepspeed_config ds_config.json --zero-stage 0
