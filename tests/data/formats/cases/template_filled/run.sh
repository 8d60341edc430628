GBS=128
sed "s/CONFIG_BATCH_SIZE/${GBS}/; s/ZERO_STAGE/2/" ds_template.json > ds_config.json
deepspeed --num_nodes 1 --num_gpus 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 \
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size $GBS --bf16 \
  --deepspeed --deepspeed_config ds_config.json
