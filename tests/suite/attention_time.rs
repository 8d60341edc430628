//! Bytes that attention moves besides its products and its kernel, figure by figure.

use shardscope::launch::plan_from_flags;
use shardscope::operators::{Operator, Symbols, Work, work_of};

const MODEL: &str = "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --ffn-hidden-size 4096 --seq-length 512 \
    --max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16 --swiglu \
    --disable-bias-linear --transformer-impl transformer_engine";

fn bytes(more: &str, name: &str) -> Option<[u64; 2]> {
    let plan = plan_from_flags(&format!("{MODEL} {more}"), 8, 8, "H100-SXM").expect("a plan");
    work_of(&Symbols::new(&plan), &[Operator::SelfAttention]).iter().find_map(|work| match work {
        Work::Kernel(kernel) if kernel.name == name => Some([kernel.forward.get(), kernel.backward.get()]),
        _ => None,
    })
}

/// 512 tokens of 16 query and 4 key heads, 64 wide, in bf16: read and written; in backward the output's gradient is
/// read, and the input is read or written three times.
#[test]
fn queries_and_keys_are_normed() {
    let elements = 512 * (16 + 4) * 64;
    let grouped = "--group-query-attention --num-query-groups 4";
    assert_eq!(
        bytes(&format!("{grouped} --qk-layernorm"), "qk_layernorm"),
        Some([4 * elements, 8 * elements])
    );
    assert_eq!(bytes(grouped, "qk_layernorm"), None);
}

/// Grouped queries are copied head by head, values before the kernel, and keys and other queries unless they were newly
/// written; in backward all three gradients are joined.
#[test]
fn what_the_kernel_takes_is_copied() {
    let of = |columns: u64| 2 * 2 * 512 * columns * 64;
    let rope = "--position-embedding-type rope";
    let grouped = "--group-query-attention --num-query-groups 4";
    for (more, forward, joined) in [
        (rope.to_owned(), 16, 48),
        (format!("{rope} {grouped}"), 16 + 4, 24),
        // Learned positions: all three are views.
        (String::new(), 48, 48),
        (grouped.to_owned(), 16 + 4 + 4, 24),
        ("--qk-layernorm".to_owned(), 16, 48),
    ] {
        assert_eq!(bytes(&more, "attention_inputs"), Some([of(forward), of(joined)]), "{more}");
    }
    // Megatron's own layers pass views to an unfused core, which counts its own copies.
    assert_eq!(bytes(&format!("{rope} --attention-backend unfused"), "attention_inputs"), None);
}
