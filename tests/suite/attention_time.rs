//! Bytes that attention moves besides its products and its kernel, figure by figure.

use shardscope::estimate::compute::Device;
use shardscope::launch::plan_from_flags;
use shardscope::operators::{Matmul, MatmulKind, Operator, Symbols, Work, work_of};
use shardscope::plan::Plan;

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

/// A long sequence in `heads` wide heads under cuDNN, in windows of `window` tokens or none.
fn long(accelerator: &str, width: u64, window: Option<u64>) -> Plan {
    let window = window.map_or(String::new(), |window| format!("--window-size {},0", window - 1));
    let flags = format!(
        "--num-layers 4 --hidden-size {} --num-attention-heads 32 --seq-length 16384 --max-position-embeddings 16384 \
         --micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16 --transformer-impl transformer_engine \
         --attention-backend fused {window}",
        32 * width
    );
    plan_from_flags(&flags, 8, 8, accelerator).expect("a plan")
}

/// TFLOP/s of both products, forward and backward.
fn rates(plan: &Plan) -> [f64; 2] {
    let device = Device::new(plan.cluster(), plan.recipe());
    let products = |work| match work {
        Work::Matmul(of) if !of.kind.has_weight() => Some(of),
        Work::Matmul(_) | Work::Kernel(_) => None,
    };
    let operator = if plan.model().mixers.window.is_some() {
        Operator::WindowedAttention
    } else {
        Operator::SelfAttention
    };
    let found: Vec<Matmul> =
        work_of(&Symbols::new(plan), &[operator]).into_iter().filter_map(products).collect();
    let flops: f64 = found.iter().map(|of| of.flops().get() * of.share).sum();
    let both = |time: &dyn Fn(&Matmul) -> f64| found.iter().map(time).sum::<f64>() * 1e12;
    // Backward computes the scores once more.
    assert!(found.iter().any(|of| of.kind == MatmulKind::Scores));
    [
        flops / both(&|of| device.fused_forward(of).get()),
        2.5 * flops / both(&|of| device.fused_backward(of).get()),
    ]
}

/// As NVIDIA measured (`cudnn-frontend`, `benchmark`): with heads of 64 windows of 128 keys run at 0.27 to 0.31 of the rate of
/// 1,024 on GB200, 187 of 660 and 170 of 632 TFLOP/s, and at 0.31 to 0.38 on H200, 94 of 303 and 135 of 355. A window that does not
/// cut anything costs what causality leaves.
#[test]
fn windows_cost_more_than_their_pairs() {
    for (accelerator, forward, backward) in
        [("GB200", 170.0 / 632.0, 187.0 / 660.0), ("H200-SXM", 135.0 / 355.0, 94.0 / 303.0)]
    {
        let [narrow, wide] = [128, 1024].map(|window| rates(&long(accelerator, 64, Some(window))));
        for (pass, measured) in [forward, backward].into_iter().enumerate() {
            let apart = narrow[pass] / wide[pass] / measured - 1.0;
            assert!(apart.abs() < 0.06, "{accelerator} {pass}: {apart}");
        }
        let all = rates(&long(accelerator, 64, None));
        let nearly = rates(&long(accelerator, 64, Some(16_383)));
        assert!((nearly[0] / all[0] - 1.0).abs() < 0.01, "{all:?} {nearly:?}");
        // Heads twice as wide are quicker by less than twice.
        let wide = rates(&long(accelerator, 128, None));
        assert!(wide[0] > 1.25 * all[0] && wide[0] < 1.5 * all[0], "{wide:?} {all:?}");
    }
}
