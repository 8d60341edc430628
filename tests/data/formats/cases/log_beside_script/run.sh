torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 \
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 128 --bf16
