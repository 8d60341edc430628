#!/bin/bash
set -e
ENV=$1
MODEL_SIZE=$2
BATCH=$3
GLOBAL_BATCH=$4
SEQ=$5
PR=$6
TP=$7
PP=$8
SP=$9
AC=${10}
DATA=${11}
: ${LR:=1e-5}

if [ $ENV = dsw ]; then
  NNODES=1
  GPUS_PER_NODE=`python -c "import torch; print(torch.cuda.device_count())"`
elif [ $ENV = dlc ]; then
  NNODES=${WORLD_SIZE}
  GPUS_PER_NODE=${KUBERNETES_CONTAINER_RESOURCE_GPU}
fi

if [ $MODEL_SIZE = 7B ]; then
  NUM_LAYERS=32; HIDDEN_SIZE=4096; NUM_ATTN_HEADS=32
elif [ $MODEL_SIZE = 13B ]; then
  NUM_LAYERS=40; HIDDEN_SIZE=5120; NUM_ATTN_HEADS=40
elif [ $MODEL_SIZE = 70B ]; then
  NUM_LAYERS=80; HIDDEN_SIZE=8192; NUM_ATTN_HEADS=64
  gqa_options=" --group-query-attention --num-query-groups 8"
fi

case $AC in
  full) ac_options="--recompute-granularity full --recompute-method uniform" ;;
  sel)  ac_options="--recompute-activations" ;;
  none) ac_options="" ;;
esac

if [ $PR = fp16 ]; then pr_options="--fp16 --initial-loss-scale 65536"
elif [ $PR = bf16 ]; then pr_options="--bf16"; fi

if [ $SP = true ] && [ $TP -gt 1 ]; then sp_options="--sequence-parallel"; else sp_options=" "; fi

run_cmd="torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain.py
 --num-layers ${NUM_LAYERS} --hidden-size ${HIDDEN_SIZE} --num-attention-heads ${NUM_ATTN_HEADS} \
 --micro-batch-size ${BATCH} --global-batch-size ${GLOBAL_BATCH} --seq-length ${SEQ} --lr ${LR} \
 --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} --data-path ${DATA} \
 ${pr_options} ${sp_options} ${ac_options} ${gqa_options}"
echo ${run_cmd}
eval ${run_cmd}
set +x
