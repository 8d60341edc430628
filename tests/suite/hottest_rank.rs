//! The rank whose experts are chosen most: what it additionally holds follows from the token copies that it receives.

use shardscope::estimate::memory;
use shardscope::operators::Symbols;
use shardscope::plan::Plan;
use shardscope::source::Source;

use crate::formats::resolved;

/// Sixteen experts, 4,096 tokens with two each, on eight ranks.
fn plan(more: &str, hottest: &str) -> Plan {
    let script = format!(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 4096 \
         --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16 --swiglu \
         --disable-bias-linear --num-experts 16 --moe-router-topk 2 --moe-ffn-hidden-size 2048 --moe-grouped-gemm \
         --moe-token-dispatcher-type alltoall --use-distributed-optimizer --normalization RMSNorm --position-embedding-type rope \
         --untie-embeddings-and-output-weights --transformer-impl transformer_engine --hidden-dropout 0 --attention-dropout 0 {more}\n"
    );
    let set = [("accelerator", "H100-SXM"), ("moe_hottest_rank", hottest)];
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let read = resolved(&Source::new(&script), &set);
    read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.diagnostics, read.not_modelled))
}

const SHARED: &str = "--expert-model-parallel-size 8";

#[test]
fn the_busiest_rank_receives_as_many_copies_as_is_said() {
    let received = |more: &str, hottest: &str| Symbols::new(&plan(more, hottest)).moe.received;
    const EVEN: u64 = 4096 * 2;
    assert_eq!(received(SHARED, "1"), EVEN);
    assert_eq!(received(SHARED, "1.5"), EVEN * 3 / 2);
    assert_eq!(received(SHARED, "2.0001"), 16_385);
    // The copies of all ranks, and no more.
    assert_eq!([received(SHARED, "8"), received(SHARED, "100")], [8 * EVEN; 2]);
    assert_eq!(received("", "3"), EVEN, "one rank has all experts");
    let capacity = format!("{SHARED} --moe-expert-capacity-factor 1.25");
    assert_eq!([received(&capacity, "1.2"), received(&capacity, "2")], [9831, EVEN * 5 / 4]);
    let padded = format!("{capacity} --moe-pad-expert-input-to-capacity");
    assert_eq!(received(&padded, "2"), EVEN * 5 / 4);
}

/// What layers keep grows by the same bytes with each additional even share: rows of the experts' inputs, of the inputs
/// and outputs of their activation, and their probabilities.
#[test]
fn the_busiest_rank_holds_more_by_what_it_receives() {
    let activations = |hottest: &str| memory(&plan(SHARED, hottest)).ranks[0].totals.activations.get();
    let [one, two, three] = ["1", "2", "3"].map(activations);
    assert_eq!(two - one, three - two);
    // Four layers, 8,192 additional rows: two inputs of 2,048 columns, an activation input and output of width 1,024; a
    // source row of 8 bytes.
    assert!(two - one > 4 * 8192 * 2 * (1024 + 3 * 2048), "{}", two - one);
    let step = |hottest: &str| shardscope::estimate::time::time(&plan(SHARED, hottest)).step.get();
    assert_eq!(step("1").to_bits(), step("3").to_bits(), "step times take the even share");
}
