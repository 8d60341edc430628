# env: EXTRA=--swiglu
# env: NODE_COUNT=3
NPROC_PER_NODE=8 NNODES=$NODE_COUNT CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 \
megatron sft \
    --load Qwen-mcore \
    --tensor_model_parallel_size 2 \
    --num_layers 28 --hidden_size 2048 --num_attention_heads 16 --seq_length 2048 \
    --micro_batch_size 4 \
    --moe_permute_fusion true $EXTRA
