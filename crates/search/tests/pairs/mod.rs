//! Pairs of a model and a cluster.

#![allow(
    clippy::expect_used,
    dead_code,
    reason = "a test that cannot go on should stop; each test takes what it needs"
)]

pub(crate) mod cases;
pub(crate) mod published;

use shardscope_launch::{Argument, megatron, resolve};
use shardscope_plan::Plan;

const LLAMA: &str = "--group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm \
    --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights --bf16";
const GPT3: &str = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 \
    --max-position-embeddings 2048 --vocab-size 51200 --bf16 --use-distributed-optimizer --micro-batch-size 1";

/// Pairs whose full spaces are searched and compared with trying everything.
pub(crate) const NAMES: [&str; 15] = [
    "llama-3 8b, 8 H100",
    "llama-3 8b, 64 H100",
    "llama-3 70b, 128 H100",
    "llama-3 70b, 128 H100 from scratch",
    "llama-3 405b, 16384 H100",
    "gpt-3 175b, 512 A100",
    "gpt-3 175b, 1024 A100",
    "mixtral 8x7b, 64 H100",
    "qwen3 235b, 256 H100",
    "qwen3 235b, 512 H100",
    "deepseek-v3, 2048 H800",
    "bloom 176b, 384 A100",
    "gpt-3 530b, 2240 A100",
    "gpt-3 1t, 512 A100",
    "gpt-3 175b, 8 A100",
];

/// A pair by its name in the tables: GPUs (8 a node), accelerator, flags.
pub(crate) fn pair(name: &str) -> (u64, &'static str, String) {
    let llama_8b = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 \
        --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --micro-batch-size 1";
    let llama_70b = "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --ffn-hidden-size 28672 \
        --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --micro-batch-size 1";
    let llama_405b = "--num-layers 126 --hidden-size 16384 --num-attention-heads 128 --ffn-hidden-size 53248 \
        --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --micro-batch-size 1";
    let dist = "--use-distributed-optimizer";
    match name {
        "llama-3 1b, 1 H100" => (
            1,
            "H100-SXM",
            format!(
                "--num-layers 16 --hidden-size 2048 --num-attention-heads 32 --ffn-hidden-size 8192 --seq-length 128 \
                 --max-position-embeddings 8192 --vocab-size 128256 {LLAMA} --micro-batch-size 1 --global-batch-size 1"
            ),
        ),
        "llama-3 8b, 8 H100" => {
            (8, "H100-SXM", format!("{llama_8b} {LLAMA} {dist} --global-batch-size 128 --tensor-model-parallel-size 2 --sequence-parallel"))
        }
        "llama-3 8b, 64 H100" => (64, "H100-SXM", format!("{llama_8b} {LLAMA} {dist} --global-batch-size 256")),
        "llama-3 70b, 128 H100" => (
            128,
            "H100-SXM",
            format!(
                "{llama_70b} {LLAMA} {dist} --global-batch-size 128 --tensor-model-parallel-size 8 \
                 --pipeline-model-parallel-size 4 --sequence-parallel"
            ),
        ),
        // What the page starts from if the reader states only the model and the GPUs.
        "llama-3 70b, 128 H100 from scratch" => {
            (128, "H100-SXM", format!("{llama_70b} {LLAMA} {dist} --global-batch-size 1024"))
        }
        "llama-3 405b, 16384 H100" => (
            16_384,
            "H100-SXM",
            format!(
                "{llama_405b} {LLAMA} {dist} --global-batch-size 2048 --tensor-model-parallel-size 8 --sequence-parallel"
            ),
        ),
        "gpt-3 175b, 512 A100" => (
            512,
            "A100-SXM-80GB",
            format!("{GPT3} --global-batch-size 1024 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --sequence-parallel"),
        ),
        "gpt-3 175b, 1024 A100" => {
            (1_024, "A100-SXM-80GB", format!("{GPT3} --global-batch-size 1536 --tensor-model-parallel-size 8 --sequence-parallel"))
        }
        "gpt-3 175b, 8 A100" => (
            8,
            "A100-SXM-80GB",
            format!("{GPT3} --global-batch-size 64 --tensor-model-parallel-size 8 --sequence-parallel"),
        ),
        "mixtral 8x7b, 64 H100" => (
            64,
            "H100-SXM",
            format!(
                "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --seq-length 4096 \
                 --max-position-embeddings 4096 --vocab-size 32000 --num-experts 8 --moe-router-topk 2 \
                 --moe-grouped-gemm --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8 \
                 --expert-tensor-parallel-size 1 --micro-batch-size 1 --global-batch-size 256 \
                 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel {LLAMA} {dist}"
            ),
        ),
        "qwen3 235b, 256 H100" | "qwen3 235b, 512 H100" => (
            if name.contains("512") { 512 } else { 256 },
            "H100-SXM",
            format!(
                "--num-layers 94 --hidden-size 4096 --num-attention-heads 64 --ffn-hidden-size 12288 --kv-channels 128 \
                 --qk-layernorm --seq-length 4096 --max-position-embeddings 4096 --vocab-size 151936 \
                 --num-experts 128 --moe-router-topk 8 --moe-ffn-hidden-size 1536 --moe-grouped-gemm \
                 --moe-token-dispatcher-type alltoall --micro-batch-size 1 --global-batch-size 2048 \
                 --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 8 \
                 --decoder-first-pipeline-num-layers 11 --decoder-last-pipeline-num-layers 11 \
                 --expert-model-parallel-size 32 --expert-tensor-parallel-size 1 {LLAMA} {dist} --num-query-groups 4"
            ),
        ),
        "deepseek-v3, 2048 H800" => (
            2_048,
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
             --recompute-num-layers 1 --bf16 --use-distributed-optimizer"
                .to_owned(),
        ),
        "bloom 176b, 384 A100" => (
            384,
            "A100-SXM-80GB",
            "--num-layers 70 --hidden-size 14336 --num-attention-heads 112 --seq-length 2048 \
             --max-position-embeddings 2048 --vocab-size 250880 --bf16 --use-distributed-optimizer \
             --micro-batch-size 2 --global-batch-size 2048 --tensor-model-parallel-size 4 \
             --pipeline-model-parallel-size 12 --account-for-embedding-in-pipeline-split \
             --account-for-loss-in-pipeline-split --recompute-granularity full --recompute-method uniform \
             --recompute-num-layers 1"
                .to_owned(),
        ),
        "gpt-3 530b, 2240 A100" => (
            2_240,
            "A100-SXM-80GB",
            "--num-layers 105 --hidden-size 20480 --num-attention-heads 128 --seq-length 2048 \
             --max-position-embeddings 2048 --vocab-size 51200 --bf16 --micro-batch-size 1 \
             --global-batch-size 2240 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 35 \
             --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
                .to_owned(),
        ),
        "gpt-3 1t, 512 A100" => (
            512,
            "A100-SXM-80GB",
            "--num-layers 128 --hidden-size 25600 --num-attention-heads 160 --seq-length 2048 \
             --max-position-embeddings 2048 --vocab-size 51200 --bf16 --micro-batch-size 1 \
             --global-batch-size 512 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 64 \
             --sequence-parallel --recompute-granularity selective --use-distributed-optimizer"
                .to_owned(),
        ),
        _ => panic!("no pair {name}"),
    }
}

/// The plan of a pair with additional flags.
pub(crate) fn plan_with(name: &str, more: &str) -> Plan {
    let (gpus, accelerator, flags) = pair(name);
    of_flags(gpus, accelerator, &format!("{flags} {more}"))
}

/// The plan of a pair.
pub(crate) fn plan(name: &str) -> Plan {
    plan_with(name, "")
}

/// The plan of a pair with `set` in addition to its flags; none if the software refuses it.
pub(crate) fn plan_set(name: &str, set: &[(&str, &str)]) -> Option<Plan> {
    let (gpus, accelerator, flags) = pair(name);
    let settings = settings(gpus, accelerator).into_iter();
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    resolve(&[megatron::read(&Argument::split(&flags))], &settings.chain(set).collect::<Vec<_>>()).plan
}

/// The plan of flags on nodes of 8 GPUs.
pub(crate) fn of_flags(gpus: u64, accelerator: &str, flags: &str) -> Plan {
    let resolution = resolve(&[megatron::read(&Argument::split(flags))], &settings(gpus, accelerator));
    let said = format!("{:?}", resolution.diagnostics);
    resolution.plan.expect(&said)
}

fn settings(gpus: u64, accelerator: &str) -> Vec<(String, String)> {
    let set = [("world_size", gpus.to_string()), ("gpus_per_node", gpus.min(8).to_string())];
    let mut set: Vec<(String, String)> = set.map(|(name, value)| (name.to_owned(), value)).to_vec();
    set.push(("accelerator".to_owned(), accelerator.to_owned()));
    set
}
