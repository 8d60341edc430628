accelerate launch --num_machines 2 --num_processes 16 --mixed_precision bf16 train.py \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1
