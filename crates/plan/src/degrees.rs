//! Degrees of parallelism as asked for, and the layout that follows from them.

use super::contradiction::Rule;
use super::hints::{counted, divisors, listed, nearest_multiple, nearest_of};
use super::limits::MAX_PIPELINE_PARTS;
use super::{
    ContextKind, Contradiction, Field, Layout, PipelineSchedule, RankOrder, StageMap, StageSizes, StageSplit,
};
use shardscope_source::Code;
use shardscope_units::product;

/// How the work is to be split. Fields that are `None` are derived from the rest as in Megatron.
#[derive(Clone, Debug, PartialEq)]
pub struct Degrees {
    /// All ranks.
    pub world_size: u64,
    /// Tensor parallel size.
    pub tensor: u64,
    /// Pipeline parallel size.
    pub pipeline: u64,
    /// Chunks per rank, 1 without interleaving; an explicit stage layout overrides it.
    pub virtual_pipeline: u64,
    /// Context-parallel size.
    pub context: u64,
    /// Expert parallel size.
    pub expert: u64,
    /// Expert tensor parallel size; the tensor size unless given.
    pub expert_tensor: Option<u64>,
    /// Sequence parallelism; has no effect with tensor size 1.
    pub sequence_parallel: bool,
    /// Order of the rank numbering.
    pub rank_order: RankOrder,
    /// How context parallelism exchanges keys and values.
    pub context_kind: ContextKind,
    /// Levels of context parallelism, inner first; empty when not used.
    pub hierarchical_context: Vec<u64>,
    /// Replicas of the distributed optimizer.
    pub distributed_optimizer_instances: u64,
    /// Ranks over which each weight has a second shard for backward; 0 if off.
    pub second_shards: u64,
    /// Micro-batches a chunk takes in a row; the pipeline size unless given.
    pub microbatch_group_size: Option<u64>,
    /// The order in which a stage works through its micro-batches.
    pub schedule: PipelineSchedule,
    /// How layers are spread over stages.
    pub split: StageSplit,
}

impl Default for Degrees {
    /// One rank, nothing sharded.
    fn default() -> Self {
        Self {
            world_size: 1,
            tensor: 1,
            pipeline: 1,
            virtual_pipeline: 1,
            context: 1,
            expert: 1,
            expert_tensor: None,
            sequence_parallel: false,
            rank_order: RankOrder::TpCpEpDpPp,
            context_kind: ContextKind::PointToPoint,
            hierarchical_context: Vec::new(),
            distributed_optimizer_instances: 1,
            second_shards: 0,
            microbatch_group_size: None,
            schedule: PipelineSchedule::OneForwardOneBackward,
            split: StageSplit::EVEN,
        }
    }
}

impl Layout {
    /// The layout of `num_layers` transformer layers and `mtp_num_layers` depths under these degrees.
    ///
    /// # Errors
    /// What Megatron refuses when it forms its process groups or spreads the layers.
    pub fn new(degrees: &Degrees, num_layers: u64, mtp_num_layers: u64) -> Result<Self, Vec<Contradiction>> {
        let expert_tensor = degrees.expert_tensor.unwrap_or(degrees.tensor);
        if let Some(contradiction) = empty_degree(degrees, expert_tensor) {
            return Err(vec![contradiction]);
        }
        // A pipeline with too many parts is refused before it is laid out.
        if let Some(contradiction) = too_many_parts(degrees.pipeline, degrees.virtual_pipeline) {
            return Err(vec![contradiction]);
        }
        // Report everything at once: nobody should fix one setting only to run into the next.
        let mut refused = Vec::new();
        refused.extend(dense_world(degrees));
        refused.extend(expert_world(degrees, expert_tensor));
        let sizes = StageSizes {
            num_layers,
            pipeline: degrees.pipeline,
            // The kinds that fold the model take two chunks whether or not the settings say so; any other number is
            // refused.
            virtual_pipeline: match degrees.virtual_pipeline {
                0 | 1 if folded(degrees) => 2,
                given => given.max(1),
            },
            mtp_num_layers,
        };
        let map = StageMap::new(sizes, &degrees.split);
        let dealt = |map: StageMap| match degrees.schedule {
            _ if folded(degrees) => map.folded(),
            PipelineSchedule::DualPipe if is_mirrored(degrees) => map.mirrored(),
            _ => map,
        };
        let stages = match map.map(dealt) {
            Ok(stages) if refused.is_empty() => stages,
            Ok(_) => return Err(refused),
            Err(contradiction) => {
                refused.push(contradiction);
                return Err(refused);
            }
        };
        // Both divide the world, as was checked above.
        let dense = degrees.tensor * degrees.pipeline * degrees.context;
        let experts = expert_tensor * degrees.expert * degrees.pipeline;
        Ok(Self {
            world_size: degrees.world_size,
            tensor: degrees.tensor,
            pipeline: degrees.pipeline,
            virtual_pipeline: stages.virtual_pipeline(),
            context: degrees.context,
            expert: degrees.expert,
            expert_tensor,
            data: degrees.world_size / dense,
            expert_data: degrees.world_size / experts,
            // Megatron turns it off with one tensor rank (`arguments.py:validate_args`), whatever the flag says.
            sequence_parallel: degrees.sequence_parallel && degrees.tensor > 1,
            rank_order: degrees.rank_order,
            context_kind: degrees.context_kind,
            hierarchical_context: degrees.hierarchical_context.clone(),
            distributed_optimizer_instances: degrees.distributed_optimizer_instances,
            second_shards: degrees.second_shards,
            microbatch_group_size: degrees.microbatch_group_size.unwrap_or(degrees.pipeline),
            schedule: degrees.schedule,
            split: degrees.split.clone(),
            stages,
        })
    }
}

/// The error for a degree of 0, over which nothing can be sharded.
fn empty_degree(degrees: &Degrees, expert_tensor: u64) -> Option<Contradiction> {
    let degrees = [
        (Field::WorldSize, degrees.world_size),
        (Field::TensorModelParallelSize, degrees.tensor),
        (Field::PipelineModelParallelSize, degrees.pipeline),
        (Field::ContextParallelSize, degrees.context),
        (Field::ExpertModelParallelSize, degrees.expert),
        (Field::ExpertTensorParallelSize, expert_tensor),
    ];
    let (field, _) = degrees.into_iter().find(|(_, degree)| *degree == 0)?;
    let message = format!("{} is 0, and nothing can be split into 0 parts", field.name());
    Some(Contradiction::new(Code::WorldSize, &[field], message).nearest(Some(1)))
}

/// The error for a pipeline of more parts than [`MAX_PIPELINE_PARTS`].
pub(super) fn too_many_parts(pipeline: u64, virtual_pipeline: u64) -> Option<Contradiction> {
    let parts = product(pipeline, virtual_pipeline);
    if parts <= MAX_PIPELINE_PARTS {
        return None;
    }
    let rule = Rule {
        code: Code::PipelineParts,
        fields: &[Field::PipelineModelParallelSize, Field::VirtualPipelineModelParallelSize],
        sentence: "PP {} x VPP {} splits the model into {} parts; the limit is {}",
        hint: "",
    };
    let numbers = [pipeline, virtual_pipeline, parts, MAX_PIPELINE_PARTS];
    let nearest = (MAX_PIPELINE_PARTS / virtual_pipeline.max(1)).max(1);
    Some(Contradiction::from_rule(&rule, &numbers).nearest(Some(nearest)))
}

/// Whether a rank of `DualPipe` holds two stages: its two copies run in opposite directions, over an even number of
/// stages.
const fn is_mirrored(degrees: &Degrees) -> bool {
    degrees.pipeline.is_multiple_of(2) && degrees.virtual_pipeline <= 1
}

/// Whether a rank holds stage r and stage 2p - 1 - r.
fn folded(degrees: &Degrees) -> bool {
    let kinds = [
        PipelineSchedule::ZeroBubbleV,
        PipelineSchedule::VHalf,
        PipelineSchedule::VMin,
        PipelineSchedule::OneForwardOneBackwardV,
        PipelineSchedule::DualPipeV,
    ];
    degrees.pipeline > 1 && kinds.contains(&degrees.schedule)
}

/// The world sizes that a hint suggests.
fn smallest_worlds(block: u64, per_node: u64) -> String {
    // A hint names sizes that are practical: the block itself, its doublings, and whole nodes.
    let first = block.max(1);
    let nearest = nearest_multiple(first, per_node.max(1)).max(first);
    let mut worlds = Vec::with_capacity(4);
    for world in [first, product(first, 2), product(first, 4), nearest] {
        if world.is_multiple_of(first) {
            worlds.push(world);
        }
    }
    worlds.sort();
    worlds.dedup();
    listed(&worlds, first)
}

fn dense_world(degrees: &Degrees) -> Option<Contradiction> {
    let Degrees { world_size, tensor, pipeline, context, .. } = *degrees;
    // Expert parallelism is not a factor here: experts are placed on the data-parallel ranks, not on additional ones.
    let block = product(product(tensor, pipeline), context);
    if world_size.is_multiple_of(block.max(1)) {
        return None;
    }
    let mut named = format!("TP {tensor} x PP {pipeline}");
    if context > 1 {
        named.push_str(&format!(" x CP {context}"));
    }
    let message = if world_size < block {
        format!("{named} needs {}; you have {world_size}", counted(block, "GPU"))
    } else {
        format!("{} cannot be divided into groups of {named} = {block}", counted(world_size, "GPU"))
    };
    let fields = [
        Field::WorldSize,
        Field::PipelineModelParallelSize,
        Field::TensorModelParallelSize,
        Field::ContextParallelSize,
        Field::NumNodes,
        Field::GpusPerNode,
    ];
    let pipelines = divisors(world_size / product(tensor, context).max(1));
    let mut hint = format!("world sizes that fit: {}, and so on", smallest_worlds(block, 8));
    if world_size.is_multiple_of(tensor * context) {
        hint.push_str(&format!(
            "; with TP {tensor} on {world_size} GPUs: PP {}",
            listed(&pipelines, pipeline)
        ));
    }
    let nearest = nearest_multiple(world_size, block);
    Some(Contradiction::new(Code::WorldSize, &fields, message).hint(hint).nearest(Some(nearest)))
}

fn expert_world(degrees: &Degrees, expert_tensor: u64) -> Option<Contradiction> {
    let Degrees { world_size, tensor, pipeline, expert, .. } = *degrees;
    let block = product(product(expert_tensor, expert), pipeline);
    // Without expert parallelism the block divides the dense one, which has already been checked.
    if world_size.is_multiple_of(block.max(1)) || (expert == 1 && expert_tensor == tensor) {
        return None;
    }
    let fields = [
        Field::ExpertModelParallelSize,
        Field::ExpertTensorParallelSize,
        Field::PipelineModelParallelSize,
        Field::WorldSize,
    ];
    let fitting = divisors(world_size / product(expert_tensor, pipeline).max(1));
    let hint = if expert_tensor > 1 && degrees.expert_tensor.is_none() {
        format!(
            "EP {} would do; or --expert-tensor-parallel-size 1 (not given, it is TP {tensor})",
            listed(&fitting, expert)
        )
    } else {
        format!("EP {} would do", listed(&fitting, expert))
    };
    let message = format!(
        "{} cannot be divided into groups of ETP {expert_tensor} x EP {expert} x PP {pipeline} = {block}",
        counted(world_size, "GPU")
    );
    Some(
        Contradiction::new(Code::ExpertWorldSize, &fields, message)
            .hint(hint)
            .nearest(nearest_of(&fitting, expert)),
    )
}

#[cfg(test)]
mod tests {
    use super::Degrees;
    use crate::Layout;

    #[track_caller]
    fn check(degrees: Degrees, expected: Result<(u64, u64), &str>) {
        let found = Layout::new(&degrees, 24, 0).map(|layout| (layout.data, layout.expert_data));
        let first = |refused: Vec<crate::Contradiction>| {
            refused.into_iter().next().map(|one| one.message).unwrap_or_default()
        };
        assert_eq!(found.map_err(first), expected.map_err(str::to_owned));
    }

    #[test]
    fn data_parallel_sizes_follow() {
        let base = Degrees { world_size: 16, tensor: 2, pipeline: 2, ..Degrees::default() };
        let none =
            |field: &str| Err::<(), String>(format!("{field} is 0, and nothing can be split into 0 parts"));
        for (degrees, field) in [
            (Degrees { tensor: 0, ..base.clone() }, "tensor_model_parallel_size"),
            (Degrees { pipeline: 0, ..base.clone() }, "pipeline_model_parallel_size"),
            (Degrees { context: 0, ..base.clone() }, "context_parallel_size"),
            (Degrees { expert: 0, ..base.clone() }, "expert_model_parallel_size"),
            (Degrees { expert_tensor: Some(0), ..base.clone() }, "expert_tensor_parallel_size"),
            (Degrees { world_size: 0, ..base.clone() }, "world_size"),
        ] {
            check(degrees, none(field).as_ref().map(|()| (0, 0)).map_err(String::as_str));
        }
        check(base.clone(), Ok((4, 4)));
        check(Degrees { expert: 4, expert_tensor: Some(1), ..base.clone() }, Ok((4, 2)));
        check(
            Degrees { pipeline: 3, ..base.clone() },
            Err("16 GPUs cannot be divided into groups of TP 2 x PP 3 = 6"),
        );
        check(
            Degrees { world_size: 8, tensor: 4, pipeline: 4, ..base.clone() },
            Err("TP 4 x PP 4 needs 16 GPUs; you have 8"),
        );
        check(
            Degrees { expert: 16, ..base },
            Err("16 GPUs cannot be divided into groups of ETP 2 x EP 16 x PP 2 = 64"),
        );
    }
}
