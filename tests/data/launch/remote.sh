#!/bin/bash
HOSTS=(10.0.0.1 10.0.0.2)
RANK=0
for IP in "${HOSTS[@]}"; do
  ssh -p 22 $IP "cd /work && torchrun --nnodes ${#HOSTS[@]} --node_rank $RANK --nproc_per_node 8 pretrain_gpt.py \
    --num-layers 16 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2" &
  RANK=$((RANK + 1))
done
wait
