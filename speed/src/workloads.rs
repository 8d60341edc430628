//! What is timed.

/// The workloads of a comparison of ten tools: name, GPUs (8 a node), accelerator, Megatron-LM's flags.
pub const WORKLOADS: [(&str, u64, &str, &str); 5] = [
    (
        "W1 GPT 2023",
        16,
        "A100-SXM-80GB",
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
         --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 64 --vocab-size 50257 \
         --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --bf16 --use-distributed-optimizer",
    ),
    (
        "W2 Llama-2 70B",
        64,
        "A100-SXM-80GB",
        "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention \
         --num-query-groups 8 --ffn-hidden-size 28672 --swiglu --normalization RMSNorm \
         --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
         --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 1 \
         --global-batch-size 128 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 \
         --sequence-parallel --recompute-activations --bf16 --use-distributed-optimizer",
    ),
    (
        "W3 GPT-3 175B",
        512,
        "A100-SXM-80GB",
        "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 \
         --max-position-embeddings 2048 --vocab-size 51200 --micro-batch-size 1 --global-batch-size 1024 \
         --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --sequence-parallel \
         --recompute-activations --bf16 --use-distributed-optimizer",
    ),
    (
        "W4 Mixtral 8x7B",
        64,
        "H100-SXM",
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention \
         --num-query-groups 8 --ffn-hidden-size 14336 --swiglu --normalization RMSNorm \
         --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
         --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 --num-experts 8 \
         --moe-router-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
         --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --micro-batch-size 1 \
         --global-batch-size 256 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 \
         --sequence-parallel --bf16 --use-distributed-optimizer",
    ),
    (
        "W5 DeepSeek-V3",
        2048,
        "H800-SXM",
        "--num-layers 61 --hidden-size 7168 --num-attention-heads 128 --ffn-hidden-size 18432 --swiglu \
         --normalization RMSNorm --position-embedding-type rope --disable-bias-linear \
         --untie-embeddings-and-output-weights --seq-length 4096 --max-position-embeddings 4096 \
         --vocab-size 129280 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 \
         --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --qk-layernorm --num-experts 256 \
         --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 \
         --moe-layer-freq ([0]*3+[1]*58) --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
         --expert-model-parallel-size 64 --expert-tensor-parallel-size 1 --pipeline-model-parallel-size 16 \
         --decoder-first-pipeline-num-layers 3 --decoder-last-pipeline-num-layers 2 --micro-batch-size 1 \
         --global-batch-size 15360 --recompute-granularity full --recompute-method uniform \
         --recompute-num-layers 1 --bf16 --use-distributed-optimizer",
    ),
];
