#!/bin/bash
# args: TP=8 MBS=4 SEQ_LENGTH=8192
# Arguments of the form KEY=VALUE become variables.
for ARGUMENT in "$@"
do
   KEY=$(echo $ARGUMENT | cut -f1 -d=)
   KEY_LENGTH=${#KEY}
   VALUE="${ARGUMENT:$KEY_LENGTH+1}"
   export "$KEY"="$VALUE"
done
TP="${TP:-1}"
PP="${PP:-1}"
MBS="${MBS:-2}"
BS="${BS:-$((MBS*8))}"
SEQ_LENGTH="${SEQ_LENGTH:-2048}"
GEMM_TUNING="${GEMM_TUNING:-1}"
GPUS_PER_NODE=`rocm-smi --showid | grep -c GPU` ; GPUS_PER_NODE=8
NNODES="${NNODES:-1}"
MODEL_SIZE="${MODEL_SIZE:-70}"
if [[ $MODEL_SIZE -eq 7 ]]; then
  HIDDEN_SIZE=4096; NUM_LAYERS=32; NUM_HEADS=32
elif [[ $MODEL_SIZE -eq 70 ]]; then
  HIDDEN_SIZE=8192; NUM_LAYERS=80; NUM_HEADS=64; NUM_GROUPS=8
else
  echo "Model size not supported"
  exit 1
fi
EXTRA_ARGS=""
if [ "$GEMM_TUNING" -eq 1 ]; then export TE_HIPBLASLT_TUNING_RUN_COUNT=10; fi
if [ -n "$NUM_GROUPS" ]; then
  EXTRA_ARGS="$EXTRA_ARGS --group-query-attention --num-query-groups $NUM_GROUPS"
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
  --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP} \
  --num-layers ${NUM_LAYERS} --hidden-size ${HIDDEN_SIZE} --num-attention-heads ${NUM_HEADS} \
  --seq-length ${SEQ_LENGTH} --micro-batch-size $MBS --global-batch-size $BS --fp16 $EXTRA_ARGS |& tee run.log
