#!/bin/bash
# args: --tp 2 --size=13b --fp8 -- rest
TP=1; SIZE=7b; FP8=0
while [[ $# -gt 0 ]]; do
  case "$1" in
    --tp) TP="$2"; shift 2 ;;
    --size=*) SIZE="${1#*=}"; shift ;;
    --fp8|--f8) FP8=1; shift ;;
    --help) echo help; exit 0 ;;
    --) shift; break ;;
    *) echo "unknown $1"; exit 1 ;;
  esac
done
declare -A LAYERS=([7b]=32 [13b]=40) HIDDEN=( ["7b"]=4096 ["13b"]=5120 )
EXTRA=()
(( FP8 )) && EXTRA+=(--fp8-format hybrid)
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers ${LAYERS[$SIZE]} --hidden-size "${HIDDEN[$SIZE]}" \
  --num-attention-heads $(( ${HIDDEN[$SIZE]} / 128 )) --tensor-model-parallel-size $TP \
  --seq-length 4096 --micro-batch-size 1 --name "$1" "${EXTRA[@]}"
