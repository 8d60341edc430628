#!/usr/bin/env bash
set -euo pipefail
SCRIPT_DIR="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"

MODEL_ARGS=(
    # the model
    --num-layers 32
    --hidden-size 4096        # wide enough
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups "${KV_GROUPS:-8}"
    --seq-length 8192
    "--max-position-embeddings 8192"
    --swiglu
    #--disable-bias-linear
)
PARALLEL=(--tensor-model-parallel-size 2 --pipeline-model-parallel-size 1)
if [[ ${USE_EP:-yes} == yes ]]; then
    PARALLEL=("${PARALLEL[@]}" --expert-model-parallel-size 8 --num-experts 8)
fi
TRAIN=(--micro-batch-size 1)
TRAIN+=(--global-batch-size 256)
TRAIN+=(
    --bf16
    --use-distributed-optimizer
)
sizes=(7 13 70)
LAST=${sizes[-1]} COUNT=${#sizes[@]}

torchrun --nproc-per-node=8 --nnodes="${NODES:-2}" \
    "${SCRIPT_DIR}/pretrain_gpt.py" "${MODEL_ARGS[@]}" ${PARALLEL[@]} ${TRAIN[@]} \
    --exit-interval ${LAST}${COUNT}
