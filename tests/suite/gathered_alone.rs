//! Weights that ZeRO-3 gathers one by one (DeepSpeed before 0.5.5): how often, and how long a step waits for them.

use shardscope::estimate::compute::{CALIBRATIONS, Calibration};
use shardscope::estimate::time::time;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::launch::{Resolution, resolve};
use shardscope::operators::Collective;
use shardscope::plan::{Generation, Plan};

fn resolved(more: &[(&str, &str)]) -> Resolution {
    let base = [
        ("software", "megatron_deepspeed"),
        ("num_layers", "96"),
        ("hidden_size", "12288"),
        ("num_attention_heads", "96"),
        ("seq_length", "2048"),
        ("max_position_embeddings", "2048"),
        ("vocab_size", "51200"),
        ("make_vocab_size_divisible_by", "1"),
        ("micro_batch_size", "1"),
        ("global_batch_size", "1536"),
        ("fp16", "true"),
        ("grads_dtype", "fp16"),
        ("zero_stage", "3"),
        ("num_nodes", "192"),
        ("gpus_per_node", "8"),
        ("accelerator", "A100-SXM-80GB"),
        ("gather_each_weight", "true"),
    ];
    let named = |name: &&str| !more.iter().any(|(other, _)| other == name);
    let settings = base.iter().filter(|(name, _)| named(name)).chain(more);
    let settings: Vec<_> = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[], &settings)
}

const RECOMPUTED: &[(&str, &str)] =
    &[("recompute_granularity", "full"), ("recompute_method", "uniform"), ("recompute_num_layers", "1")];

fn plan(more: &[(&str, &str)]) -> Plan {
    let resolution = resolved(more);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

/// Elements and calls of a step's messages that carry `tensor` by `collective`.
fn sent(plan: &Plan, tensor: &str, collective: Collective) -> Vec<(u64, u64)> {
    let ledger = traffic(plan);
    let data = ledger.dimension(Parallelism::Data).expect("messages of replicas");
    let of = data.operations.iter().filter(|one| one.tensor == tensor && one.collective == collective);
    let mut all: Vec<(u64, u64)> = Vec::new();
    for one in of {
        let elements = one.shape.iter().product();
        match all.iter_mut().find(|(known, _)| *known == elements) {
            Some((_, calls)) => *calls += one.calls(0),
            None => all.push((elements, one.calls(0))),
        }
    }
    all.sort_unstable();
    all
}

const SQUARE: u64 = 12288 * 12288;

/// A layer has four weights of 100,000 elements and more. All are gathered in forward, in recomputation and in backward but
/// the last: between its two uses behind the layer's recomputation there are 6.0e8 elements, its own, where up to 1e9 it stays.
#[test]
fn each_weight_is_gathered_when_it_is_used() {
    let gathers = sent(&plan(RECOMPUTED), "weights", Collective::AllGather);
    let (table, positions) = (51200 * 12288, 2048 * 12288);
    assert_eq!(
        gathers,
        [(positions, 2), (SQUARE, 96 * 3), (3 * SQUARE, 96 * 3), (4 * SQUARE, 96 * (3 + 2)), (table, 2)]
    );
    let scatters = sent(&plan(RECOMPUTED), "gradients", Collective::ReduceScatter);
    assert_eq!(scatters, [(positions, 1), (SQUARE, 96), (3 * SQUARE, 96), (4 * SQUARE, 96 * 2), (table, 1)]);
    // Nothing is recomputed, so nothing is gathered for it.
    let kept = sent(&plan(&[]), "weights", Collective::AllGather);
    assert_eq!(kept.iter().map(|(_, calls)| calls).sum::<u64>(), 2 * (96 * 4 + 2));
}

/// The wait for weights is the sum over these messages: 130 µs before a launch and 250 in it over eight ranks, 5 and 15 more
/// for each further one, the message beside the launch, and four passes over the weight; for a gradient two, its host hidden
/// by its two products.
#[test]
fn a_step_waits_for_every_message() {
    let ranks = 1536.0;
    let plan = plan(RECOMPUTED);
    let set: Calibration =
        *CALIBRATIONS.iter().find(|set| set.generation == Generation::A100).expect("the set");
    let accelerator = &plan.cluster().accelerator;
    let memory = accelerator.memory_bandwidth.get() * set.memory;
    let half = accelerator.peaks.half.get() * set.matmul.half;
    let network = accelerator.network.bandwidth.get() * set.network * 8.0;
    let fast = accelerator.fast_link.bandwidth.get() * set.fast_link;
    let message = |bytes: f64| {
        let start = set.network_start.get() + set.network_hop.get() * ranks;
        start + bytes * (ranks - 1.0) / ranks / network.min(fast)
    };
    let before = 130e-6 + 5e-6 * (ranks - 8.0);
    let launch = 250e-6 + 15e-6 * (ranks - 8.0);
    let mut waited = 0.0;
    for (elements, calls) in sent(&plan, "weights", Collective::AllGather) {
        let bytes = 2.0 * elements as f64;
        waited += calls as f64 * (before + launch.max(message(bytes)) + 4.0 * bytes / memory);
    }
    for (elements, calls) in sent(&plan, "gradients", Collective::ReduceScatter) {
        let bytes = 2.0 * elements as f64;
        let prepared = before + 5e-6 * ranks + launch - 4.0 * 2048.0 * elements as f64 / half;
        waited += calls as f64 * (prepared.max(0.0) + message(bytes) + 2.0 * bytes / memory);
    }
    let estimate = time(&plan);
    let data = estimate.breakdown.children().iter().find(|part| part.label() == "data").expect("a part");
    let told = data.value().get();
    assert!((told / waited - 1.0).abs() < 1e-9, "{told} {waited}");
}

/// Other software, second shards and lower stages.
#[test]
fn where_weights_are_not_gathered_so() {
    let stops = |more: &[(&str, &str)]| {
        resolved(more).not_modelled.iter().any(|item| item.is_called("gather_each_weight"))
    };
    assert!(!stops(&[]));
    assert!(!stops(&[("software", "gpt_neox")]));
    assert!(stops(&[("software", "torchtitan")]));
    assert!(stops(&[("second_weight_shards", "8")]));
    assert!(!stops(&[("software", "torchtitan"), ("zero_stage", "1")]));
    let of = |alone: &str| time(&plan(&[("zero_stage", "1"), ("gather_each_weight", alone)])).step;
    assert_eq!(of("true"), of("false"));
}
