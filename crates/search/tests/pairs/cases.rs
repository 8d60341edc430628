//! Runs that do not fit or are slower than necessary, each a case in which the advice was once silent or wrong.

use shardscope_plan::Plan;

use super::of_flags;

const LLAMA: &str = "--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear \
    --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 8 --seq-length 8192 \
    --max-position-embeddings 8192 --vocab-size 128256 --bf16";
const LLAMA_8B: &str = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336";
const LLAMA_70B: &str = "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --ffn-hidden-size 28672";
const GPT3: &str = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 \
    --max-position-embeddings 2048 --vocab-size 51200 --micro-batch-size 1 --global-batch-size 64 --bf16 \
    --use-distributed-optimizer --tensor-model-parallel-size 8 --sequence-parallel";

/// The cases by name.
pub(crate) const CASES: [&str; 7] = [
    "8b with nothing",
    "8b replicated",
    "8b, deep pipeline",
    "8b, scores in memory",
    "70b, large micro-batch",
    "175b, bubble",
    "deepseek-v3, all recomputed",
];

/// The plan of a case.
pub(crate) fn case(name: &str) -> Plan {
    let shared = "--micro-batch-size 1 --global-batch-size 128 --use-distributed-optimizer";
    match name {
        "8b with nothing" => of_flags(8, "H100-SXM", &format!("{LLAMA_8B} {LLAMA} {shared}")),
        "8b replicated" => of_flags(
            8,
            "H100-SXM",
            &format!(
                "{LLAMA_8B} {LLAMA} --micro-batch-size 4 --global-batch-size 128 --tensor-model-parallel-size 2"
            ),
        ),
        "8b, deep pipeline" => {
            of_flags(8, "H100-SXM", &format!("{LLAMA_8B} {LLAMA} {shared} --pipeline-model-parallel-size 8"))
        }
        "8b, scores in memory" => of_flags(
            8,
            "A100-SXM-80GB",
            &format!(
                "{LLAMA_8B} {LLAMA} {shared} --tensor-model-parallel-size 2 --sequence-parallel --attention-backend unfused"
            ),
        ),
        "70b, large micro-batch" => of_flags(
            128,
            "H100-SXM",
            &format!(
                "{LLAMA_70B} {LLAMA} --micro-batch-size 8 --global-batch-size 512 --use-distributed-optimizer \
                 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --sequence-parallel"
            ),
        ),
        "175b, bubble" => of_flags(512, "A100-SXM-80GB", &format!("{GPT3} --pipeline-model-parallel-size 8")),
        "deepseek-v3, all recomputed" => super::plan("deepseek-v3, 2048 H800"),
        _ => panic!("no case {name}"),
    }
}
