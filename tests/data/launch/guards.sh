#!/bin/bash
usage() { echo "usage: $0 DATA"; exit 1; }
if [ $# -lt 1 ]; then
  echo "usage: $0 DATA" >&2
  exit 1
fi
[ -d "$1" ] || { echo "no such folder"; exit 2; }
[[ -z "$WANDB_API_KEY" ]] && echo "WANDB_API_KEY is not set" && exit 1
test -f /workspace/ready || usage
: "${HF_TOKEN:?set it first}"
if ! command -v nvidia-smi &> /dev/null; then
  echo "no GPU"; exit 3
fi
cd /workspace || exit
if [ -f latest_checkpointed_iteration.txt ]; then
  LOAD="--load ckpt"
  MBS=8
fi
MBS=${MBS:-4}
torchrun --standalone --nproc_per_node=4 train.py --num-layers 12 --hidden-size 768 \
  --num-attention-heads 12 --seq-length 1024 --micro-batch-size $MBS $LOAD
exit 0
torchrun --nproc_per_node=2 never.py --num-layers 99 --hidden-size 99
