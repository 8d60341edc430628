//! FSDP whose groups each hold all shards (HSDP): a rank holds what one of such a group alone holds, and shards are added up
//! across the groups.

use shardscope::estimate::memory;
use shardscope::estimate::traffic::{Operation, Parallelism, traffic};
use shardscope::launch::resolve;
use shardscope::operators::Collective;
use shardscope::plan::Plan;
use shardscope::topology::{GroupKind, Groups};

fn plan(nodes: &str, set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "hf_transformers"),
        ("model", "Qwen/Qwen2.5-7B"),
        ("accelerator", "H100-SXM"),
        ("num_nodes", nodes),
        ("gpus_per_node", "8"),
        ("micro_batch_size", "2"),
        ("seq_length", "2048"),
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

#[test]
fn a_rank_holds_what_one_of_a_group_alone_holds() {
    for engine in ["fsdp1", "fsdp2"] {
        let alone = memory(&plan("1", &[("data_parallel_engine", engine)]));
        let copies = memory(&plan(
            "4",
            &[("data_parallel_engine", engine), ("num_distributed_optimizer_instances", "4")],
        ));
        let [alone, copies] = [alone, copies].map(|memory| memory.ranks[0].totals);
        assert_eq!(alone.parameters, copies.parameters);
        assert_eq!(alone.gradients, copies.gradients);
        assert_eq!(alone.optimizer, copies.optimizer);
        assert_eq!(alone.peak_allocated, copies.peak_allocated);
        let all = memory(&plan("4", &[("data_parallel_engine", engine)]));
        assert!(all.ranks[0].totals.parameters.get() * 4 <= copies.parameters.get() + 4096);
    }
}

#[test]
fn shards_of_gradients_are_added_up_across_groups() {
    let copies = plan("4", &[("num_distributed_optimizer_instances", "4")]);
    let groups = Groups::of(copies.layout());
    assert_eq!(
        (groups.size(GroupKind::DataContextInstance), groups.size(GroupKind::ExpertDataAcross)),
        (8, 4)
    );
    let ledger = traffic(&copies);
    let of = ledger.of(Parallelism::Data).expect("it sends");
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
