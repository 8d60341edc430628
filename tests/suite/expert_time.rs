//! The time of mixtures of experts and of reductions, figure by figure.

use shardscope::estimate::compute::Device;
use shardscope::estimate::time::time;
use shardscope::launch::{plan_from_flags, resolve};
use shardscope::operators::{Operator, Symbols, Work, work_of};
use shardscope::plan::Plan;

const MODEL: &str = "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --ffn-hidden-size 4096 --seq-length 512 \
    --max-position-embeddings 512 --micro-batch-size 1 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear";
const EXPERTS: &str = "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 2048 --moe-grouped-gemm --global-batch-size 16";

fn plan(more: &str, world: u64) -> Plan {
    plan_from_flags(&format!("{MODEL} {more}"), world, world.min(8), "H100-SXM").expect("a plan")
}

fn bytes(plan: &Plan, name: &str) -> Option<[u64; 2]> {
    let work = work_of(&Symbols::new(plan), &[Operator::Experts]);
    work.iter().find_map(|work| match work {
        Work::Kernel(kernel) if kernel.name == name => Some([kernel.forward.get(), kernel.backward.get()]),
        _ => None,
    })
}

/// 512 tokens of 1,024 columns in bf16, two copies of each.
#[test]
fn a_fused_permutation_reads_tokens_once_and_sorts_only_several_experts() {
    let row = 1024 * 2;
    for (more, rows) in [
        // One copy in each direction: tokens read, copies written; copies read, their sum written.
        ("--moe-permute-fusion", 2 * (512 + 1024)),
        // Four ranks with two experts each: received copies are sorted, and sorted back.
        (
            "--expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall --moe-permute-fusion",
            2 * (512 + 1024) + 4 * 1024,
        ),
        // Eight ranks with one expert each: nothing to sort.
        (
            "--expert-model-parallel-size 8 --moe-token-dispatcher-type alltoall --moe-permute-fusion",
            2 * (512 + 1024),
        ),
        // Each token is sent once to each of the two ranks that need it.
        (
            "--expert-model-parallel-size 4 --moe-token-dispatcher-type flex --moe-permute-fusion",
            2 * (1024 + 1024),
        ),
        // All tokens of four ranks, from which the experts here take their share.
        (
            "--expert-model-parallel-size 4 --moe-token-dispatcher-type allgather --moe-permute-fusion",
            2 * (2048 + 1024),
        ),
        // Two ranks with four experts each, each expert split in two: a rank with half of the tokens sorts the copies
        // of both halves.
        (
            "--tensor-model-parallel-size 2 --sequence-parallel --expert-model-parallel-size 2 --expert-tensor-parallel-size 2 \
             --moe-token-dispatcher-type alltoall --moe-permute-fusion",
            2 * (256 + 512) + 8 * 512,
        ),
        // Unfused: gathered and scattered copy by copy, through an intermediate tensor.
        ("--expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall", 4 * 4 * 1024),
    ] {
        let plan = plan(&format!("{EXPERTS} {more}"), 8);
        assert_eq!(bytes(&plan, "permute"), Some([rows * row; 2]), "{more}");
    }
}

/// `experts.py:_apply_bias`: 24 bytes of fp32 and two accesses to the output in forward, 32 and four in backward, per
/// element.
#[test]
fn biases_of_experts_outputs_are_kernels_of_their_own() {
    let of = |more: &str| {
        let flags = MODEL.replace(" --disable-bias-linear", "");
        let flags = format!("{flags} {EXPERTS} {more}");
        bytes(&plan_from_flags(&flags, 8, 8, "H100-SXM").expect("a plan"), "experts.output_bias")
    };
    let copies = 512 * 2 * 1024;
    assert_eq!(of(""), Some([copies * 28, copies * 40]));
    assert_eq!(of("--disable-bias-linear"), None);
}

/// Per expert of a rank: half a kernel each and two in forward, six quarters each and two in backward.
#[test]
fn biases_of_experts_outputs_cost_the_host_operations_for_each_expert() {
    let flags = MODEL.replace(" --disable-bias-linear", "");
    for (more, expected) in
        [("", [8 / 2 + 2, 8 * 6 / 4 + 2]), ("--expert-model-parallel-size 4", [2 / 2 + 2, 2 * 6 / 4 + 2])]
    {
        let plan = plan_from_flags(&format!("{flags} {EXPERTS} {more}"), 8, 8, "H100-SXM").expect("a plan");
        let work = work_of(&Symbols::new(&plan), &[Operator::Experts]);
        let launches = work.iter().find_map(|work| match work {
            Work::Kernel(kernel) if kernel.name == "experts.output_bias" => {
                Some([kernel.launches_forward, kernel.launches_backward])
            }
            _ => None,
        });
        assert_eq!(launches, Some(expected), "{more}");
        // For any number of ranks, each has the same number of token copies.
        assert_eq!(
            bytes(&plan, "experts.output_bias"),
            Some([512 * 2 * 1024 * 28, 512 * 2 * 1024 * 40]),
            "{more}"
        );
    }
}

/// The number of an expert's tokens is not read back if it equals its capacity.
#[test]
fn padded_experts_do_not_wait_for_the_host() {
    let settings = |more: &[(&str, &str)]| {
        let base = [
            ("num_layers", "8"),
            ("hidden_size", "1024"),
            ("num_attention_heads", "16"),
            ("ffn_hidden_size", "4096"),
            ("seq_length", "4096"),
            ("vocab_size", "32000"),
            ("micro_batch_size", "1"),
            ("global_batch_size", "8"),
            ("num_experts", "8"),
            ("moe_router_topk", "2"),
            ("moe_grouped_gemm", "true"),
            ("moe_token_dispatcher_type", "alltoall"),
            ("moe_aux_loss_coeff", "0.01"),
            ("expert_model_parallel_size", "8"),
            ("cuda_graph_impl", "transformer_engine"),
            ("bf16", "true"),
            ("num_nodes", "1"),
            ("gpus_per_node", "8"),
            ("accelerator", "H100-SXM"),
        ];
        let all: Vec<(String, String)> =
            base.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let resolution = resolve(&[], &all);
        resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
    };
    let padded = [("moe_expert_capacity_factor", "1"), ("moe_pad_expert_input_to_capacity", "true")];
    let host = |plan: &Plan| time(plan).breakdown.child("host").expect("a part").value().get();
    let (dropless, padded) = (settings(&[]), settings(&padded));
    assert!(Operator::Experts.reads_back(&Symbols::new(&dropless)));
    assert!(!Operator::Experts.reads_back(&Symbols::new(&padded)));
    assert!(host(&padded) < host(&dropless), "{} {}", host(&padded), host(&dropless));
}

/// Seconds of a ring over 16 H100 in two nodes for a message of `bytes`, `times` around.
fn ring(plan: &Plan, bytes: f64, times: f64, hops: f64) -> f64 {
    let device = Device::new(plan.cluster(), plan.recipe());
    let bandwidth = device.fast.get().min(8.0 * device.network.get());
    let start = device.calibration.network_start.get() + hops * device.calibration.network_hop.get();
    start + times * bytes * 15.0 / 16.0 / bandwidth
}

fn data(plan: &Plan) -> f64 {
    time(plan).breakdown.child("data").expect("a part").value().get()
}

/// Replicas of a dense model have no expert gradients to reduce, and spend no time on it.
#[test]
fn a_group_with_nothing_to_send_takes_no_time() {
    let plan = plan("--global-batch-size 16", 16);
    let elements = shardscope::estimate::parameters(&plan).ranks[0].count.get() as f64;
    let width = plan.recipe().grads_dtype.width() as f64;
    let expected = ring(&plan, elements * width, 2.0, 4.0);
    assert!((data(&plan) / expected - 1.0).abs() < 1e-12, "{} {expected}", data(&plan));
}

/// ZeRO-2 scatters gradients after each of four micro-batches, ZeRO-1 once, both as often as their messages state.
#[test]
fn zero_2_reduces_after_every_micro_batch() {
    let with = |stage: &str| {
        let settings: Vec<(String, String)> = [
            ("software", "megatron_deepspeed"),
            ("num_layers", "4"),
            ("hidden_size", "1024"),
            ("num_attention_heads", "16"),
            ("ffn_hidden_size", "4096"),
            ("seq_length", "512"),
            ("vocab_size", "32000"),
            ("micro_batch_size", "1"),
            ("global_batch_size", "64"),
            ("bf16", "true"),
            ("zero_stage", stage),
            ("overlap_grad_reduce", "false"),
            ("overlap_param_gather", "false"),
            ("num_nodes", "2"),
            ("gpus_per_node", "8"),
            ("accelerator", "H100-SXM"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let resolution = resolve(&[], &settings);
        resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
    };
    let (first, second) = (with("1"), with("2"));
    let elements = shardscope::estimate::parameters(&first).ranks[0].count.get() as f64;
    let width = first.recipe().reduce_dtype().width() as f64;
    let scatter = ring(&first, elements * width, 1.0, 16.0);
    let more = data(&second) - data(&first);
    assert!((more / (3.0 * scatter) - 1.0).abs() < 1e-9, "{more} {scatter}");
}

/// Of the line rate, unless it was measured.
#[test]
fn exchanges_over_the_network_take_their_part_of_its_bandwidth() {
    let plan = plan(EXPERTS, 16);
    let device = Device::new(plan.cluster(), plan.recipe());
    assert_eq!(device.network_exchange, plan.cluster().accelerator.network.bandwidth * 0.87);
    assert!(device.network_exchange.get() > 1e9);
}
