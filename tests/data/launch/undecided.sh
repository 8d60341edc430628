#!/bin/bash
SIZE=$1
if [ "$SIZE" = small ]; then
  LAYERS=12
elif [ "$SIZE" = large ]; then
  LAYERS=24
fi
if [ "$2" = long ]; then SEQ=8192; else SEQ=2048; fi
if [ -d /data/fast ]; then TP=2; else TP=1; fi
if [ "$FP8" = yes ]; then MBS=2; else MBS=1; fi
HIDDEN=$(($HEADS * 128))
torchrun --nproc_per_node ${GPUS:-8} --nnodes $NNODES pretrain_gpt.py \
  --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads $HEADS --seq-length $SEQ \
  --micro-batch-size $MBS --tensor-model-parallel-size $TP $EXTRA_ARGS
