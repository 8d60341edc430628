//! What a group shares and sends, in a sentence, and who belongs to it.

use super::{Colour, holds, relation_name};
use crate::link_name;
use shardscope_estimate::traffic::Traffic;
use shardscope_plan::{DpSharding, Plan};
use shardscope_topology::{GroupKind, Groups, Link, Rank};
use shardscope_units::{grouped, size};
use std::ops::Range;

/// The GPUs that `colour` groups with `rank`: its group of a kind, otherwise its pipeline stage, which also
/// determines memory and traffic; restricted to `among`, the GPUs that are drawn.
#[must_use]
pub fn company_of(plan: &Plan, colour: Colour, rank: Rank, among: &Range<u64>) -> Vec<u64> {
    let groups = Groups::new(plan.layout());
    // Outside any group of the kind there are none, not even the GPU itself.
    if let Colour::Group(kind) = colour {
        let group = groups.group(kind, rank);
        let ranks = group.iter().flat_map(|group| group.ranks().map(Rank::get));
        return ranks.filter(|other| among.contains(other)).collect();
    }
    // A stage of the largest clusters has tens of thousands of GPUs, and a pointer passes over several per frame.
    let stage = |rank: Rank| groups.coordinates(rank).pipeline;
    let own = stage(rank);
    (among.start..among.end.min(groups.world())).filter(|other| stage(Rank::new(*other)) == own).collect()
}

/// For the group of `rank` that `colour` shows: what its GPUs share, and what each of them sends in a step; for its
/// stage, what it holds. Empty if the colour shows neither.
#[must_use]
pub fn group_caption(plan: &Plan, traffic: &Traffic, colour: Colour, rank: Rank) -> Option<String> {
    let groups = Groups::new(plan.layout());
    let label = rank.label(plan.cluster().gpus_per_node);
    let kind = match colour {
        Colour::Group(kind) => kind,
        Colour::Stage => {
            // The division below must not fail for a layout that a test or a later rule leaves at zero.
            let (stage, stages) = (groups.coordinates(rank).pipeline, plan.layout().pipeline.max(1));
            let gpus = match groups.world() / stages {
                1 => "1 GPU holds".to_owned(),
                gpus => format!("{} GPUs hold", grouped(gpus)),
            };
            let holds = holds(plan, stage).join("; ");
            let place =
                if stages == 1 { "no pipeline".to_owned() } else { format!("stage {stage} of {stages}") };
            return Some(format!("{label}: {place}: {gpus} {holds}."));
        }
        _ => return None,
    };
    let group = groups.group(kind, rank)?;
    // Specific to this kind; kinds that the map does not offer fall through to a phrase that is true for any group.
    let shares = match kind {
        GroupKind::Tensor => "split the weight matrices of every layer between them",
        GroupKind::Pipeline => "hold the consecutive stages of one model replica",
        // Under FSDP or ZeRO 3 replicas hold different shards, so "the same shard" would be untrue.
        GroupKind::Data | GroupKind::DataContext if plan.recipe().dp_sharding == DpSharding::Parameters => {
            "shard the weights between them and process different samples"
        }
        GroupKind::Data | GroupKind::DataContext => {
            "hold the same shard of the model and process different samples"
        }
        GroupKind::Context => "split every sequence between them",
        GroupKind::Expert => "hold different experts of the same layers",
        GroupKind::ExpertTensor => "split the matrices of each expert between them",
        GroupKind::ExpertData => "hold the same experts and read different samples",
        GroupKind::Embedding => "hold the same tied embedding",
        _ => "work together",
    };
    let (index, size_of) = (grouped(group.index()), grouped(group.size()));
    let mut text = format!("{label}: {} group {index}: {size_of} GPUs {shares}.", relation_name(kind));
    // Replicas reduce over context ranks too, whether or not there are several.
    let data = |kind| matches!(kind, GroupKind::Data | GroupKind::DataContext);
    let sends = |group: GroupKind| group == kind || data(group) && data(kind);
    let dimension = traffic.dimensions.iter().find(|of| sends(of.group));
    if let Some(of) = dimension {
        let sent = of.per_gpu();
        let link = if of.link == Link::Network { "the network" } else { link_name(of.link) };
        text += &format!(" Each step a GPU sends {} over {link}.", size(sent.wire));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn a_group_says_what_it_shares_and_sends() {
        let shown = State::default().shown.expect("a plan");
        let caption = |colour| group_caption(&shown.plan, &shown.report.traffic, colour, Rank::new(3));
        let data = caption(Colour::Group(GroupKind::Data)).expect("a caption");
        assert!(data.starts_with("n0_g3: data parallel group 1: 4 GPUs hold the same shard"), "{data}");
        assert!(data.contains("Each step a GPU sends"), "{data}");
        let sharded = crate::apply(
            State::default(),
            crate::Event::Set { name: "use_megatron_fsdp".into(), value: "true".into() },
        );
        let shown = sharded.shown.expect("a plan of sharded weights");
        let fsdp =
            group_caption(&shown.plan, &shown.report.traffic, Colour::Group(GroupKind::Data), Rank::new(3));
        let fsdp = fsdp.expect("a caption");
        assert!(!fsdp.contains("same shard"), "{fsdp}");
        let pipeline = caption(Colour::Group(GroupKind::Pipeline)).expect("a caption");
        assert!(pipeline.ends_with("over the network."), "{pipeline}");
        assert_eq!(caption(Colour::Memory), None);
    }

    #[test]
    fn without_a_pipeline_no_stage_is_reported() {
        let whole = crate::apply(
            State::default(),
            crate::Event::Set { name: "pipeline_model_parallel_size".into(), value: "1".into() },
        );
        let shown = whole.shown.expect("a plan");
        let caption = group_caption(&shown.plan, &shown.report.traffic, Colour::Stage, Rank::new(0));
        assert!(caption.expect("a caption").starts_with("n0_g0: no pipeline: 16 GPUs hold embedding"));
    }

    #[test]
    fn under_the_stage_chip_the_stage_is_reported_and_lit() {
        let shown = State::default().shown.expect("a plan");
        let rank = Rank::new(9);
        let caption = group_caption(&shown.plan, &shown.report.traffic, Colour::Stage, rank);
        let caption = caption.expect("a caption");
        assert!(caption.starts_with("n1_g1: stage 1 of 2: 8 GPUs hold "), "{caption}");
        assert_eq!(company_of(&shown.plan, Colour::Stage, rank, &(0..16)), (8..16).collect::<Vec<_>>());
        assert_eq!(company_of(&shown.plan, Colour::Group(GroupKind::Tensor), rank, &(0..16)), [8, 9]);
        assert_eq!(company_of(&shown.plan, Colour::Stage, rank, &(4..11)), [8, 9, 10]);
        assert_eq!(company_of(&shown.plan, Colour::Group(GroupKind::Tensor), rank, &(9..16)), [9]);
    }
}
