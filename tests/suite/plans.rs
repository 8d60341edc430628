//! Random plans, all features mixed: shapes, degrees, schedules, precisions, recomputation, sharding.

use shardscope::launch::{Argument, megatron, resolve};
use shardscope::plan::Plan;

use super::random::Random;

/// One of `words`.
fn one<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[random.below(words.len() as u64) as usize]
}

/// The flags and settings of a plan that may or may not be consistent.
pub(crate) fn settings(random: &mut Random) -> (String, Vec<(String, String)>) {
    let heads = 8 << random.below(4);
    let layers = [4, 8, 12, 16, 24, 32, 48, 61, 64][random.below(9) as usize];
    let p = [1, 1, 2, 2, 3, 4, 4, 6, 8, 16][random.below(10) as usize];
    let (t, c) = (1_u64 << random.below(4), 1_u64 << random.below(3).saturating_sub(1));
    let d = 1_u64 << random.below(4);
    let m = 1 + random.below(48);
    let micro = 1 << random.below(3);
    let seq = 512_u64 << random.below(7);
    let mut flags = format!(
        "--num-layers {layers} --hidden-size {} --num-attention-heads {heads} --seq-length {seq} --bf16 \
         --max-position-embeddings {seq} --vocab-size {} --micro-batch-size {micro} --global-batch-size {} \
         --tensor-model-parallel-size {t} --pipeline-model-parallel-size {p} --context-parallel-size {c}",
        heads * 64 * (1 + random.below(2)),
        32_000 << random.below(3),
        micro * d * m,
    );
    let mut say = |word: &str| {
        flags.push(' ');
        flags.push_str(word);
    };
    let dense = one(
        random,
        &[
            "--swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope",
            "",
            "--swiglu --group-query-attention --num-query-groups 8 --position-embedding-type rope",
        ],
    );
    say(dense);
    for (chance, word) in [
        (2, "--sequence-parallel"),
        (2, "--use-distributed-optimizer"),
        (2, "--untie-embeddings-and-output-weights"),
        (3, "--overlap-grad-reduce"),
        (4, "--use-flash-attn"),
        (6, "--no-overlap-p2p-communication"),
        (8, "--account-for-loss-in-pipeline-split --account-for-embedding-in-pipeline-split"),
        (6, "--transformer-impl local"),
        (8, "--fp8-format hybrid"),
    ] {
        if random.below(chance) == 0 {
            say(word);
        }
    }
    if random.below(3) == 0 {
        say(&format!("--num-layers-per-virtual-pipeline-stage {}", 1 + random.below(4)));
    }
    if random.below(4) == 0 {
        say(&format!("--num-experts {} --moe-router-topk 2 --moe-grouped-gemm", 8 << random.below(3)));
        say(&format!("--expert-model-parallel-size {}", 1 << random.below(4)));
    }
    say(one(
        random,
        &[
            "",
            "",
            "--recompute-activations",
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
            "--recompute-granularity full --recompute-method block --recompute-num-layers 2",
        ],
    ));
    let mut set = vec![
        ("world_size".to_owned(), (t * c * d * p).to_string()),
        ("gpus_per_node".to_owned(), (t * c * d * p).min(8).to_string()),
        ("accelerator".to_owned(), one(random, &["H100-SXM", "A100-SXM-80GB", "B200-SXM"]).to_owned()),
    ];
    if random.below(2) == 0 {
        let kind = one(
            random,
            &["gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "1f1b-v", "dualpipe", "dualpipe-v"],
        );
        set.push(("pipeline_schedule".to_owned(), kind.to_owned()));
    }
    (flags, set)
}

/// The plan from such settings, or none.
pub(crate) fn plan(flags: &str, set: &[(String, String)]) -> Option<Plan> {
    resolve(&[megatron::read(&Argument::split(flags))], set).plan
}
