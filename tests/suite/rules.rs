//! Groups given by rule instead of lists: the rule gives the same as a list, and a million ranks give a small document.

use serde_json::Value;
use shardscope::advice::advised;
use shardscope::launch::{Argument, megatron, resolve};
use shardscope::plan::{Layout, RankOrder};
use shardscope::report::document::{Document, Lists};
use shardscope::source::Source;
use shardscope::topology::{Groups, Rank};

use super::bounds::processor_seconds;
use super::drafts::draft;
use super::random::Random;

/// The ranks of member `place` of group `group`, only from what the document says.
fn by_rule(rule: &Value, group: u64, place: u64) -> u64 {
    let offset = |axes: &Value, mut index: u64| {
        let mut sum = 0;
        for axis in axes.as_array().expect("axes") {
            let [count, stride] = ["count", "stride"].map(|key| axis[key].as_u64().expect("a number"));
            sum += index % count * stride;
            index /= count;
        }
        sum
    };
    offset(&rule["groups"], group) + offset(&rule["members"], place)
}

fn layout(random: &mut Random) -> Layout {
    let power = |random: &mut Random, most: u64| 1_u64 << random.below(most);
    let [tensor, context, data, pipeline] =
        [power(random, 4), power(random, 4), power(random, 5), 1 + random.below(5)];
    let world = tensor * context * data * pipeline;
    let expert_tensor = power(random, 3).min(tensor);
    let expert = power(random, 5).min(tensor * context * data / expert_tensor);
    let mut layout = draft().layout;
    layout.world_size = world;
    (layout.tensor, layout.context, layout.data, layout.pipeline) = (tensor, context, data, pipeline);
    (layout.expert_tensor, layout.expert) = (expert_tensor, expert);
    layout.expert_data = world / (expert_tensor * expert * pipeline);
    layout.distributed_optimizer_instances = power(random, 3).min(data).min(layout.expert_data.max(1));
    if context >= 4 {
        layout.hierarchical_context = vec![2, context / 2];
    }
    let same = tensor * context == expert_tensor * expert;
    if same && random.below(2) == 0 {
        layout.rank_order = RankOrder::TpCpEpPpDp;
    }
    layout
}

#[test]
fn rules_give_the_groups() {
    let mut random = Random::new(4_096);
    let (mut kinds, mut without) = (0, 0);
    for _ in 0..400 {
        let layout = layout(&mut random);
        let groups = Groups::new(&layout);
        for kind in groups.kinds() {
            let mut listed: Vec<Vec<u64>> =
                groups.all(kind).map(|group| group.ranks().map(Rank::get).collect()).collect();
            listed.sort_by_key(|ranks| ranks.first().copied());
            kinds += 1;
            let Some(rule) = groups.rule(kind) else {
                without += 1;
                continue;
            };
            let (count, size) = (groups.count(kind), groups.size(kind));
            let given: Vec<Vec<u64>> =
                (0..count).map(|group| (0..size).map(|place| rule.rank(group, place)).collect()).collect();
            assert_eq!(given, listed, "{kind:?} {layout:?}");
        }
    }
    assert!(kinds > 6_000 && without * 50 < kinds, "{without} of {kinds} without a rule");
}

/// A GPT on this many nodes with eight GPUs each.
fn document(nodes: u64, lists: Lists) -> String {
    let flags = format!(
        "--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048 \
         --vocab-size 51200 --micro-batch-size 1 --global-batch-size {} --tensor-model-parallel-size 8 \
         --pipeline-model-parallel-size 8 --sequence-parallel --bf16 --use-distributed-optimizer",
        nodes * 8 / 64 * 16
    );
    let set =
        [("num_nodes", nodes.to_string()), ("gpus_per_node", "8".into()), ("accelerator", "H100-SXM".into())];
    let set = set.map(|(name, value)| (name.to_owned(), value));
    let resolution = resolve(&[megatron::read(&Argument::split(&flags))], &set);
    let plan = resolution.plan.clone().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    let report = advised(&plan).expect("an estimate");
    Document::with_lists(&Source::new(""), &resolution, Some(&report), lists).to_json(true)
}

#[test]
fn a_million_gpus_make_a_small_document() {
    let started = processor_seconds();
    let text = document(131_072, Lists::Short);
    let took = processor_seconds() - started;
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
    assert!(took < if cfg!(debug_assertions) { 8.0 } else { 1.0 }, "{took} s");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let topology = &document["report"]["topology"];
    assert_eq!(topology["world_size"], 1_048_576);
    let pipeline = &topology["groups"]["pipeline"];
    assert_eq!((&pipeline["count"], &pipeline["size"]), (&131_072.into(), &8.into()));
    assert_eq!(by_rule(&pipeline["rule"], 5, 3), 5 + 3 * 131_072);
    assert_eq!(pipeline["first"][1][1], by_rule(&pipeline["rule"], 1, 1));
    let [labels, gpus] = [&topology["labels"], &document["report"]["memory"]["ranks"][1]["gpus"]];
    assert_eq!((&labels["count"], &labels["first"][9]), (&1_048_576.into(), &"n1_g1".into()));
    assert_eq!((&gpus["count"], &gpus["ranks"]["first"]), (&131_072.into(), &131_072.into()));
    assert_eq!(gpus["first"][0], "n16384_g0");
}

/// Up to 4,096 ranks, and if everything is requested, groups and labels are lists.
#[test]
fn lists_are_whole_where_they_are_asked_for() {
    let of = |nodes, lists| -> Value { serde_json::from_str(&document(nodes, lists)).expect("JSON") };
    let [whole, short, full] = [of(512, Lists::Short), of(1_024, Lists::Short), of(1_024, Lists::Full)];
    let pipeline = |document: &Value| document["report"]["topology"]["groups"]["pipeline"].clone();
    assert_eq!(pipeline(&whole).as_array().map(Vec::len), Some(512));
    let (short, full) = (pipeline(&short), pipeline(&full));
    let lists = full.as_array().expect("a list");
    assert_eq!(short["count"].as_u64(), Some(lists.len() as u64));
    for (group, ranks) in lists.iter().enumerate() {
        for (place, rank) in ranks.as_array().expect("ranks").iter().enumerate() {
            assert_eq!(rank.as_u64(), Some(by_rule(&short["rule"], group as u64, place as u64)));
        }
    }
}
