//! What a group shares and sends, in a sentence.

use super::{Colour, relation_name};
use crate::link_name;
use shardscope_estimate::traffic::Traffic;
use shardscope_plan::{DpSharding, Plan};
use shardscope_topology::{GroupKind, Groups, Link, Rank};
use shardscope_units::size;

/// Of the group that `rank` has in the kind that `colour` tells: what its GPUs share, and what each of them sends in a
/// step. Nothing where the colour tells of no group.
#[must_use]
pub fn group_caption(plan: &Plan, traffic: &Traffic, colour: Colour, rank: Rank) -> Option<String> {
    let Colour::Group(kind) = colour else { return None };
    let groups = Groups::of(plan.layout());
    let group = groups.group(kind, rank)?;
    let shares = match kind {
        GroupKind::Tensor => "split the weight matrices of every layer between them",
        GroupKind::Pipeline => "hold the consecutive stages of one model replica",
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
    let label = rank.label(plan.cluster().gpus_per_node);
    let mut text =
        format!("{label}: {} group {}: {} GPUs {shares}.", relation_name(kind), group.index(), group.size());
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
}
