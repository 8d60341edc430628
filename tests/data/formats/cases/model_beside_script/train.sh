torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --seq-length 4096 --max-position-embeddings 4096 \
  --micro-batch-size 1 --global-batch-size 16 --tensor-model-parallel-size 2 --fp16 --num-layers 14
