#!/bin/bash
ZERO_STAGE=1
MICRO_BATCH_SIZE=4
config_json="./ds_config.json"
cat <<EOT > $config_json
{
  "train_micro_batch_size_per_gpu": $MICRO_BATCH_SIZE,
  "train_batch_size": 128,
  "gradient_clipping": 1.0,
  "zero_optimization": {
    "stage": $ZERO_STAGE
  },
  "bf16": {"enabled": true}
}
EOT
torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 \
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size $MICRO_BATCH_SIZE --global-batch-size 128 --bf16 \
  --deepspeed --deepspeed_config $config_json
