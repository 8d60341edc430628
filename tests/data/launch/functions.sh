#!/bin/bash
model_options() {
  local size=$1
  local -i layers=12
  case $size in
    small) layers=12 hidden=768 ;;
    large) layers=36; hidden=1280 ;;
  esac
  echo "--num-layers $layers --hidden-size ${hidden} --num-attention-heads $((hidden / 64))"
}
function run {
  local name=$1; shift
  echo "running $name"
  "$@" $COMMON --save ckpt/$name
}
COMMON="--seq-length 1024 --micro-batch-size 8"
COMMON+=" --bf16"
OPTIONS=$(model_options large)
run first python -m torch.distributed.run --nproc_per_node=8 --nnodes=1 pretrain_gpt.py $OPTIONS
