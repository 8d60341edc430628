#!/bin/bash
# A backslash before a comment ends the command after the comment: what follows is lost.
OPTS=" --num-layers 12 \
   --hidden-size 768 \
   # --hidden-size 1024 \
   --num-attention-heads 12 "
torchrun --nproc_per_node 2 train.py $OPTS \
   --seq-length 512 \
   --micro-batch-size 4 \
   # --bf16 \

torchrun --nproc_per_node 2 eval_zero_shot.py --num-layers 12 --hidden-size 768 \
   --num-attention-heads 12 \
   # --fp16 \
   --load ckpt \
   --lost 1
