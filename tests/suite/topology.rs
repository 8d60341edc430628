//! Groups compared with Megatron-LM's own, run at d98e8a64 with recording stubs (`data/megatron/groups.jsonl`: per kind
//! the number of groups, their size, and the first 16 digits of the SHA-256 of the JSON list of lists).

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest, Sha256};
use shardscope::launch::plan_from_flags;
use shardscope::plan::{
    Accelerator, Cluster, ContextKind, Generation, Layout, Link as PlanLink, Measured, Peaks,
    PipelineSchedule, Processor, RankOrder, StageMap, StageSplit,
};
use shardscope::topology::{GroupKind, Groups, Link, Rank, notation};
use shardscope::units::{Bytes, BytesPerSecond, FlopsPerSecond};

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

pub(crate) fn layout(config: &Value) -> Layout {
    let get = |key| number(config, key).unwrap_or(1);
    let [world, tensor, pipeline, context, expert] = ["world_size", "tp", "pp", "cp", "ep"].map(get);
    let expert_tensor = number(config, "etp").unwrap_or(tensor);
    let swapped = config.get("use_tp_pp_dp_mapping") == Some(&Value::Bool(true));
    let levels = config.get("hierarchical_cp").and_then(Value::as_array);
    Layout {
        world_size: world,
        tensor,
        pipeline,
        virtual_pipeline: get("vpp"),
        context,
        expert,
        expert_tensor,
        data: world / (tensor * pipeline * context),
        expert_data: world / (expert_tensor * expert * pipeline),
        sequence_parallel: false,
        rank_order: if swapped { RankOrder::TpCpEpPpDp } else { RankOrder::TpCpEpDpPp },
        context_kind: ContextKind::PointToPoint,
        hierarchical_context: levels.into_iter().flatten().filter_map(Value::as_u64).collect(),
        distributed_optimizer_instances: get("dist_opt_instances"),
        second_shards: 0,
        microbatch_group_size: pipeline,
        schedule: PipelineSchedule::OneForwardOneBackward,
        split: StageSplit::EVEN,
        stages: StageMap { stages: Vec::new() },
    }
}

fn cluster(gpus_per_node: u64, fast_domain: u64, gpus: u64) -> Cluster {
    let link = |name: &str| PlanLink { name: name.into(), bandwidth: BytesPerSecond::giga(50.0) };
    Cluster {
        num_nodes: gpus.div_ceil(gpus_per_node),
        gpus_per_node,
        fast_domain,
        measured: Measured::default(),
        accelerator: Accelerator {
            name: "X".into(),
            generation: Generation::H100,
            capability: None,
            tpu: false,
            memory: Bytes::gib(80),
            memory_bandwidth: BytesPerSecond::tera(3.0),
            peaks: Peaks {
                fp32: FlopsPerSecond::tera(60.0),
                half: FlopsPerSecond::tera(900.0),
                fp8: None,
                fp4: None,
            },
            multiprocessors: 132,
            fast_link: link("fast"),
            host_link: link("host"),
            network: link("network"),
            context: Bytes::mib(500),
            processor: Processor::SapphireRapids,
            source: "test".into(),
        },
    }
}

fn digest(groups: &Groups, kind: GroupKind) -> String {
    let lists: Vec<Vec<u64>> = groups.all(kind).map(|group| group.ranks().map(Rank::get).collect()).collect();
    let text = serde_json::to_string(&lists).expect("numbers are JSON");
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_group_of_every_kind_is_megatrons() {
    let cases = include_str!("../data/megatron/groups.jsonl");
    let mut compared = 0;
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let Some(expected) = case.get("groups").and_then(Value::as_object) else { continue };
        let groups = Groups::new(&layout(&case["config"]));
        let kinds: Vec<GroupKind> = groups.kinds();
        assert_eq!(kinds.len(), expected.len(), "kinds of {}", case["id"]);
        for kind in kinds {
            let found = serde_json::json!([groups.count(kind), groups.size(kind), digest(&groups, kind)]);
            assert_eq!(Some(&found), expected.get(kind.short()), "{} of {}", kind.short(), case["id"]);
            compared += 1;
        }
    }
    assert!(compared > 1000, "only {compared} lists compared");
}

#[test]
fn groups_partition_the_ranks_and_know_their_members() {
    for line in include_str!("../data/megatron/groups.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let layout = layout(&case["config"]);
        if case.get("error").is_some() || layout.world_size > 256 {
            continue;
        }
        let groups = Groups::new(&layout);
        for kind in groups.kinds() {
            let machines = cluster(8, 8, layout.world_size);
            for group in groups.all(kind) {
                let walked = group.ranks().flat_map(|one| group.ranks().map(move |other| (one, other)));
                let slowest = walked.map(|(one, other)| Link::between(&machines, one, other)).max();
                assert_eq!(slowest, Some(group.link(&machines)), "{} {}", kind.short(), case["id"]);
            }
            let mut seen = vec![0_u32; layout.world_size as usize];
            for group in groups.all(kind) {
                for rank in group.ranks() {
                    seen[rank.get() as usize] += 1;
                    let own = groups.group(kind, rank).expect("a member is in a group");
                    assert_eq!(own.index(), group.index(), "{} {}", kind.short(), case["id"]);
                }
            }
            let partial = matches!(kind, GroupKind::Embedding | GroupKind::PositionEmbedding);
            for (rank, times) in seen.iter().enumerate() {
                let listed = !groups.group_of(kind, Rank::new(rank as u64)).is_empty();
                assert_eq!(*times, u32::from(listed));
                assert!(partial || listed);
            }
        }
    }
}

/// Nodes and fast links of several sizes, including odd ones, that do and do not hold full groups: the slowest link of
/// a kind is that between two members of some group, and a group is on as many nodes and domains as its members.
#[test]
fn the_slowest_link_is_that_of_walking_every_group() {
    let mut compared = 0;
    for line in include_str!("../data/megatron/groups.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let layout = layout(&case["config"]);
        if case.get("error").is_some() || layout.world_size > 256 {
            continue;
        }
        let groups = Groups::new(&layout);
        for (per_node, domain) in [(8, 8), (8, 4), (4, 8), (4, 16), (6, 3), (2, 1), (1, 1), (5, 10)] {
            let machines = cluster(per_node, domain, layout.world_size);
            for kind in groups.kinds() {
                let context = || format!("{} of {} on {per_node} with {domain}", kind.short(), case["id"]);
                let mut slowest = None;
                for group in groups.all(kind) {
                    let spread = group.spread(&machines);
                    let places = |size: u64| {
                        group.ranks().map(|rank| rank.get() / size).collect::<BTreeSet<_>>().len() as u64
                    };
                    assert_eq!(
                        (spread.nodes, spread.domains, spread.size),
                        (places(per_node), places(domain), group.ranks().count() as u64),
                        "{}",
                        context()
                    );
                    let link = match (spread.size, spread.domains, spread.nodes) {
                        (1, ..) => Link::Alone,
                        (_, 1, _) => Link::Fast,
                        (_, _, 1) => Link::Node,
                        _ => Link::Network,
                    };
                    assert_eq!((spread.link, group.link(&machines)), (link, link), "{}", context());
                    slowest = slowest.max(Some(link));
                }
                let found = groups.slowest(kind, &machines).map(|group| group.link(&machines));
                assert_eq!(found, slowest, "{}", context());
                assert_eq!(Some(groups.link(kind, &machines)), slowest, "{}", context());
                compared += 1;
            }
        }
    }
    assert!(compared > 5_000, "{compared}");
}

/// Three levels of context parallelism: the groups of a level only differ in its digit of the context rank.
#[test]
fn middle_levels_of_context_are_cut_out_of_both_sides() {
    let config = serde_json::json!({"world_size": 24, "tp": 2, "cp": 12, "hierarchical_cp": [2, 3, 2]});
    let groups = Groups::new(&layout(&config));
    let lists = |level| {
        let all = groups.all(GroupKind::ContextLevel(level));
        all.map(|group| group.ranks().map(Rank::get).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let mut found: Vec<Vec<u64>> = lists(1);
    found.sort();
    let middle: Vec<Vec<u64>> =
        [0, 1, 2, 3, 12, 13, 14, 15].map(|first| vec![first, first + 4, first + 8]).to_vec();
    assert_eq!(found, middle);
    let pairs = |level: u8, stride: u64| {
        assert!(
            lists(level).iter().all(|group| group.len() == 2 && group[1] == group[0] + stride),
            "{level}"
        );
        assert_eq!(lists(level).len(), 12);
    };
    pairs(0, 2);
    pairs(2, 12);
    for level in 0..3 {
        for rank in (0..24).map(Rank::new) {
            let own = groups.group(GroupKind::ContextLevel(level), rank).expect("a group");
            assert!(own.ranks().any(|member| member == rank), "{level} {rank:?}");
        }
    }
}

/// Second weight shards (ZeRO++ hpZ): consecutive members of a data-parallel group, listed if there are several.
#[test]
fn second_shards_are_runs_of_the_data_group() {
    let config = serde_json::json!({"world_size": 16, "tp": 2});
    for (shards, runs) in [(0, 1), (16, 1), (8, 1), (4, 2), (2, 4)] {
        let groups = Groups::new(&Layout { second_shards: shards, ..layout(&config) });
        assert_eq!(groups.world(), 16);
        assert_eq!(groups.kinds().contains(&GroupKind::SecondShards), runs > 1, "{shards}");
        let found: Vec<Vec<u64>> =
            groups.all(GroupKind::SecondShards).map(|group| group.ranks().map(Rank::get).collect()).collect();
        let each = 8 / runs;
        let run = |tensor: u64, run: u64| (0..each).map(|place| tensor + 2 * (run * each + place)).collect();
        let expected: Vec<Vec<u64>> =
            (0..2).flat_map(|tensor| (0..runs).map(move |at| run(tensor, at))).collect();
        assert_eq!(found, expected, "{shards}");
    }
}

#[test]
fn the_seeds_groups_in_its_notation() {
    let config = serde_json::json!({"world_size": 16, "tp": 2, "pp": 2});
    let groups = Groups::new(&layout(&config));
    let shown = |kind| groups.all(kind).map(|group| notation(group.ranks(), 8)).collect::<Vec<_>>();
    assert_eq!(shown(GroupKind::Pipeline)[0], "[n0_g0 n1_g0]");
    assert_eq!(shown(GroupKind::Pipeline).len(), 8);
    assert_eq!(
        shown(GroupKind::Data),
        [
            "[n0_g0 n0_g2 n0_g4 n0_g6]",
            "[n0_g1 n0_g3 n0_g5 n0_g7]",
            "[n1_g0 n1_g2 n1_g4 n1_g6]",
            "[n1_g1 n1_g3 n1_g5 n1_g7]"
        ]
    );
    assert_eq!(shown(GroupKind::Tensor)[7], "[n1_g6 n1_g7]");
}

#[track_caller]
fn check_link(config: Value, machines: &Cluster, kind: GroupKind, expected: Link) {
    let groups = Groups::new(&layout(&config));
    assert_eq!(groups.link(kind, machines), expected);
    let walked = groups.all(kind).map(|group| group.link(machines)).max();
    assert_eq!(walked, Some(expected), "walking every group");
}

#[test]
fn links_follow_nodes_and_domains() {
    let sixteen = || serde_json::json!({"world_size": 16, "tp": 2, "pp": 2});
    let eight = cluster(8, 8, 16);
    check_link(sixteen(), &eight, GroupKind::Tensor, Link::Fast);
    check_link(sixteen(), &eight, GroupKind::Pipeline, Link::Network);
    check_link(sixteen(), &eight, GroupKind::Data, Link::Fast);
    check_link(sixteen(), &eight, GroupKind::Context, Link::Alone);
    // Pairs bridged by NVLink in nodes of eight.
    check_link(sixteen(), &cluster(8, 2, 16), GroupKind::Data, Link::Node);
    // 72 in one NVLink domain, four to a node.
    let wide = serde_json::json!({"world_size": 144, "tp": 8, "pp": 2});
    check_link(wide, &cluster(4, 72, 144), GroupKind::Tensor, Link::Fast);
    let across = serde_json::json!({"world_size": 144, "tp": 16, "pp": 1});
    check_link(across, &cluster(4, 72, 144), GroupKind::Tensor, Link::Network);
    // Groups of three do not tile eight: some groups stay within a node, the second crosses.
    let odd = serde_json::json!({"world_size": 24, "tp": 3});
    check_link(odd, &cluster(8, 8, 24), GroupKind::Tensor, Link::Network);
}

#[test]
fn llama3s_cluster_is_asked_rank_by_rank() {
    let config = serde_json::json!({"world_size": 16384, "tp": 8, "pp": 16, "cp": 1});
    let groups = Groups::new(&layout(&config));
    let rank = Rank::new(9_999);
    let here = groups.coordinates(rank);
    assert_eq!((here.tensor, here.data, here.pipeline), (7, 1249 % 128, 9));
    assert_eq!(groups.group_of(GroupKind::DataContext, rank).len(), 128);
    assert_eq!(groups.group(GroupKind::Tensor, rank).map(|group| group.index()), Some(1249));
}

/// A model that every layout of the cases can split.
fn flags(config: &Value) -> String {
    let get = |key| number(config, key).unwrap_or(1);
    let mut flags = format!(
        "--tensor-model-parallel-size {} --pipeline-model-parallel-size {} --context-parallel-size {} --num-layers {} \
         --hidden-size 3072 --ffn-hidden-size 9216 --num-attention-heads 48 --seq-length 6144 --max-position-embeddings 6144 \
         --vocab-size 32000 --micro-batch-size 1 --global-batch-size {} --bf16 --use-distributed-optimizer --transformer-impl transformer_engine",
        get("tp"),
        get("pp"),
        get("cp"),
        get("pp") * get("vpp") * 2,
        get("world_size") * get("pp"),
    );
    let mut add = |key: &str, flag: &str| {
        if let Some(value) = number(config, key) {
            flags.push_str(&format!(" {flag} {value}"));
        }
    };
    add("etp", "--expert-tensor-parallel-size");
    add("vpp", "--num-virtual-stages-per-pipeline-rank");
    add("dist_opt_instances", "--num-distributed-optimizer-instances");
    if get("ep") > 1 {
        add(
            "ep",
            "--num-experts 64 --moe-router-topk 2 --moe-ffn-hidden-size 1024 --expert-model-parallel-size",
        );
    }
    if config.get("use_tp_pp_dp_mapping") == Some(&Value::Bool(true)) {
        flags.push_str(" --use-tp-pp-dp-mapping");
    }
    if let Some(levels) = config.get("hierarchical_cp").and_then(Value::as_array) {
        flags.push_str(" --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes");
        levels.iter().for_each(|level| flags.push_str(&format!(" {level}")));
    }
    if get("tp") > 1 {
        flags.push_str(" --sequence-parallel");
    }
    flags
}

#[test]
fn what_megatron_refuses_is_refused_for_its_reason() {
    let mut refused = 0;
    for line in include_str!("../data/megatron/groups.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let (world, per_node) = (
            number(&case["config"], "world_size").unwrap(),
            number(&case["config"], "gpus_per_node").unwrap(),
        );
        let per_node = if world.is_multiple_of(per_node) { per_node } else { 1 };
        let found = plan_from_flags(&flags(&case["config"]), world, per_node, "H100-SXM");
        let Some(error) = case.get("error").and_then(Value::as_str) else {
            let plan = found.unwrap_or_else(|reasons| panic!("{}: {reasons:?}", case["id"]));
            let found = plan.layout().clone();
            let expected = Layout {
                sequence_parallel: found.sequence_parallel,
                context_kind: found.context_kind,
                microbatch_group_size: found.microbatch_group_size,
                stages: found.stages.clone(),
                ..layout(&case["config"])
            };
            assert_eq!(found, expected, "{}", case["id"]);
            continue;
        };
        let code = match error {
            "world size not divisible by tp*pp*cp" => "world-size",
            "world size not divisible by etp*ep*pp" => "expert-world-size",
            "with --use-tp-pp-dp-mapping and pp>1, dp must equal expert dp" => "rank-order",
            "virtual pipeline needs pp>1" => "vpp-without-pp",
            other => panic!("{other}"),
        };
        let reasons = found.expect_err("refused");
        assert!(
            reasons.iter().any(|reason| reason.code.name() == code),
            "{} {code}: {reasons:?}",
            case["id"]
        );
        refused += 1;
    }
    assert!(refused >= 8, "{refused}");
}
