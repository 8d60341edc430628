//! FSDP whose groups each hold all shards (HSDP): a rank holds the same as a rank of a single group, and shards are
//! all-reduced across the groups.

use serde_json::Value;
use shardscope::estimate::memory;
use shardscope::estimate::time::time;
use shardscope::estimate::traffic::{Operation, Parallelism, traffic};
use shardscope::launch::resolve;
use shardscope::operators::Collective;
use shardscope::plan::Plan;
use shardscope::topology::{GroupKind, Groups};
use shardscope::units::Bytes;

fn plan(nodes: &str, set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "hf_transformers"),
        ("model", "Qwen/Qwen2.5-7B"),
        ("accelerator", "H100-SXM"),
        ("num_nodes", nodes),
        ("gpus_per_node", "8"),
        // So few tokens that the peak is in a layer and not in the loss.
        ("micro_batch_size", "1"),
        ("seq_length", "256"),
        ("params_dtype", "fp32"),
        ("bf16", "true"),
        ("reduce_dtype", "fp32"),
        ("attn_implementation", "flash_attention_2"),
        ("gradient_checkpointing", "true"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "3"),
        ("num_micro_batches", "2"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// `tests/record/hybrid_reductions.py`.
const RECORDED: &str = include_str!("../data/activations/hybrid_reductions.jsonl");

/// Bytes of shards that are all-reduced across groups, at the peak.
fn added_up(plan: &Plan) -> Bytes {
    let rank = &memory(plan).ranks[0];
    let all =
        rank.breakdown.child("peak_allocated").and_then(|all| all.child("temporaries")).expect("a peak");
    all.child("gradient shards added up across groups").map_or(Bytes::ZERO, |part| part.value())
}

/// Bytes of the shards of `units` units of `elements` elements each, in a format of `width` bytes.
fn shards(units: u64, elements: u64, ranks: u64, width: u64) -> u64 {
    units * elements / ranks * width
}

/// The tensor that a unit's all-reduce refers to stays until backward is over, unless it is the gradient itself.
#[test]
fn shards_added_up_stay_until_backward_is_over() {
    let cases = RECORDED.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect(line));
    let mut moments = 0;
    for case in cases {
        let [layers, h, vocabulary, ranks] =
            ["layers", "h", "V", "shards"].map(|key| case[key].as_u64().expect(key));
        let width = |key: &str| if case[key] == "fp32" { 4 } else { 2 };
        // An output layer that is a separate unit is reduced before the layers are.
        let head = if case["apart"] == true { vocabulary * h } else { 0 };
        for (batch, recorded) in case["micro_batches"].as_array().expect("two").iter().enumerate() {
            let is_apart = batch > 0 || width("reduce") != width("shard");
            for behind in 0..=layers {
                let index = usize::try_from(behind).expect("few");
                let made =
                    shards(behind, h * h, ranks, width("reduce")) + shards(1, head, ranks, width("reduce"));
                let expected = if is_apart { made } else { 0 };
                assert_eq!(recorded[index]["added"].as_u64(), Some(expected), "{case} {batch} {behind}");
                moments += 1;
            }
            assert_eq!(recorded[usize::try_from(layers + 1).expect("few")]["added"].as_u64(), Some(0));
        }
    }
    assert_eq!(moments, 48);
}

/// The engine counts the same. With recomputed layers each keeps less than its shard, so the peak is after all of them,
/// in the embedding.
#[test]
fn the_peak_has_the_shards_of_all_layers_behind() {
    let groups = ("num_distributed_optimizer_instances", "4");
    // Qwen2.5-7B: projections of 28 and 4 heads of 128 with biases, three of the MLP, two norms.
    let layer = 3_584 * (3_584 + 2 * 512 + 3_584) + 3_584 + 2 * 512 + 3 * 3_584 * 18_944 + 2 * 3_584;
    let several = plan("4", &[groups]);
    assert_eq!(added_up(&several).get(), shards(28, layer, 8, 4));
    // The gradients themselves: in the same format, for the first micro-batch.
    assert_eq!(added_up(&plan("4", &[groups, ("num_micro_batches", "1")])), Bytes::ZERO);
    let narrow = [groups, ("num_micro_batches", "1"), ("reduce_dtype", "bf16")];
    assert_eq!(added_up(&plan("4", &narrow)).get(), shards(28, layer, 8, 2));
    assert_eq!(added_up(&plan("4", &[groups, ("data_parallel_engine", "fsdp1")])), Bytes::ZERO);
    assert_eq!(added_up(&plan("4", &[])), Bytes::ZERO);
}

#[test]
fn a_rank_holds_what_one_of_a_group_alone_holds() {
    for engine in ["fsdp1", "fsdp2"] {
        let alone = memory(&plan("1", &[("data_parallel_engine", engine)]));
        let copied =
            plan("4", &[("data_parallel_engine", engine), ("num_distributed_optimizer_instances", "4")]);
        let copies = memory(&copied);
        let [alone, copies] = [alone, copies].map(|memory| memory.ranks[0].totals);
        assert_eq!(alone.parameters, copies.parameters);
        assert_eq!(alone.gradients, copies.gradients);
        assert_eq!(alone.optimizer, copies.optimizer);
        let added = added_up(&copied);
        assert_eq!(copies.peak_allocated, alone.peak_allocated + added);
        assert_eq!(added > Bytes::ZERO, engine == "fsdp2");
        let all = memory(&plan("4", &[("data_parallel_engine", engine)]));
        assert!(all.ranks[0].totals.parameters.get() * 4 <= copies.parameters.get() + 4096);
    }
}

#[test]
fn shards_of_gradients_are_added_up_across_groups() {
    let copies = plan("4", &[("num_distributed_optimizer_instances", "4")]);
    let groups = Groups::new(copies.layout());
    assert_eq!(
        (groups.size(GroupKind::DataContextInstance), groups.size(GroupKind::ExpertDataAcross)),
        (8, 4)
    );
    let ledger = traffic(&copies);
    let of = ledger.dimension(Parallelism::Data).expect("it sends");
    let sent = |collective: Collective| -> Vec<_> {
        of.operations
            .iter()
            .filter(|one| one.collective == collective && one.tensor.starts_with("gradient"))
            .collect()
    };
    let elements = |one: &Operation| one.shape.iter().product::<u64>();
    let (scattered, added) = (sent(Collective::ReduceScatter), sent(Collective::AllReduce));
    assert!(!scattered.is_empty() && scattered.len() == added.len());
    for (scattered, added) in scattered.iter().zip(&added) {
        assert_eq!(scattered.group, GroupKind::DataContextInstance);
        assert_eq!(added.group, GroupKind::ExpertDataAcross);
        assert_eq!(scattered.per_iteration, added.per_iteration);
        assert_eq!(elements(scattered).div_ceil(8), elements(added));
        assert_eq!(added.dtype, "fp32");
    }
}

/// The time has them as often as the messages: with every micro-batch, or once where a trainer waits for the last. Four nodes of
/// a slow network, over which shards of 7.6 billion gradients take far longer than all else.
#[test]
fn the_time_adds_shards_up_as_often_as_they_are_sent() {
    let data = |batches: &str, defers: &str| {
        let set = [
            ("num_distributed_optimizer_instances", "4"),
            ("num_micro_batches", batches),
            ("defer_reduction", defers),
            ("measured_network_bus_gbps", "1"),
        ];
        time(&plan("4", &set)).breakdown.child("data").expect("a part").value().get()
    };
    let once = data("1", "false");
    let twice = data("2", "false") / once;
    assert!((twice - 2.0).abs() < 0.02, "{twice}");
    let waits = data("2", "true") / once;
    assert!((waits - 1.0).abs() < 0.02, "{waits}");
}
