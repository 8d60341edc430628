#!/bin/bash
NNODES=<number of nodes>
DATA_PATH=<Specify path and file prefix>_text_document
CHECKPOINT_PATH=<Specify path> (e.g. /data/gpt)
VOCAB=<PATH TO vocab.json>
DP_SIZE=$NNODES*8/(4*2)
python -m torch.distributed.launch --nproc_per_node 8 --nnodes $NNODES \
       pretrain_gpt2.py \
       --model-parallel-size 4 \
       --num-layers 24 \
       --hidden-size <hidden size> \
       --num-attention-heads 16 \
       --batch-size 8 \
       --seq-length 1024 \
       --max-position-embeddings 1024 \
       --save $CHECKPOINT_PATH \
       --data-path $DATA_PATH \
       --vocab-file $VOCAB --fp16
