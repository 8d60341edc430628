//! How the work is split, from the settings.

use super::table::{Table, listed_names};
use crate::SettingValue::Int;
use shardscope_plan::hints::{divisors, listed};
use shardscope_plan::{
    ContextKind, Contradiction, Degrees, Field, Layout, PipelineSchedule, RankOrder, StageMap, StageSizes,
    StageSplit,
};
use shardscope_source::Code;

/// The layout on `world_size` ranks from the settings; none if it cannot be formed.
pub(super) fn layout(table: &mut Table, world_size: u64) -> Option<Layout> {
    // Settings that the layout needs are settled first, each by a rule that overrides the text.
    replicas(table, world_size);
    experts_over_data(table);
    copies_of_nodes(table);
    let num_layers = super::model::layers(table)?;
    let mtp_num_layers = table.number(Field::MtpNumLayers);
    let mut degrees = degrees(table, world_size)?;
    match without_noops(table, &degrees, mtp_num_layers) {
        Ok(None) => {}
        Ok(Some(layout)) => degrees.split = StageSplit::Layout(layout),
        Err(refused) => {
            table.refuse_all(vec![refused]);
            return None;
        }
    }
    match Layout::new(&degrees, num_layers, mtp_num_layers) {
        Ok(layout) => {
            state(table, &layout);
            Some(layout)
        }
        // If the world is too small for the layout, asking for more machines may help; other contradictions it cannot
        // solve.
        Err(refused) => {
            let small = [Code::WorldSize, Code::ExpertWorldSize];
            // By code, since the message is for people.
            if refused.iter().any(|contradiction| small.contains(&contradiction.code)) {
                super::world::ask_for_more(table);
            }
            table.refuse_all(refused);
            None
        }
    }
}

/// The number of replicas, which follows from the ranks whether or not the rest can be laid out.
fn replicas(table: &mut Table, world_size: u64) {
    // A world that the degrees do not divide is rejected below with a value that would work; no DP is stated for it.
    let of_one = table.ranks_of_one();
    if world_size.is_multiple_of(of_one) && world_size > 0 {
        let rule = "world size / (TP x PP x CP)";
        table.overrule(Field::DataParallelSize, Int(world_size / of_one), rule);
    }
}

/// megablocks shards its experts over the data-parallel ranks, over as many as there are experts
/// (`megablocks/layers/mpu.py`, expert_sharding_degree).
fn experts_over_data(table: &mut Table) {
    let experts = table.number(Field::NumExperts);
    if table.on(Field::ExpertsOverData) && experts > 0 {
        // If there are more ranks than experts, they hold copies.
        let degree = table.degree(Field::DataParallelSize).min(experts);
        let rule = "the data-parallel size, at most the number of experts (megablocks)";
        table.overrule(Field::ExpertModelParallelSize, Int(degree), rule);
    }
}

/// FSDP1's hybrid strategies shard within a node unless they are given groups
/// (`torch/distributed/fsdp/_init_utils.py:_init_process_group_state_for_hybrid_shard`).
fn copies_of_nodes(table: &mut Table) {
    if table.on(Field::ShardWithinNodes) {
        let nodes = table.degree(Field::NumNodes);
        let rule = "nodes: each holds all shards (HSDP)";
        table.overrule(Field::NumDistributedOptimizerInstances, Int(nodes), rule);
    }
    if let Some(shards) = table.count(Field::ShardRanks) {
        let data = table.degree(Field::DataParallelSize);
        if data.is_multiple_of(shards) {
            let rule = "DP / ranks that share one copy (HSDP)";
            table.overrule(Field::NumDistributedOptimizerInstances, Int(data / shards), rule);
        } else {
            let message =
                format!("{data} data-parallel ranks do not divide into sharding groups of {shards}");
            let fields = [Field::ShardRanks, Field::DataParallelSize];
            table.refuse(Code::Instances, &fields, message, "");
        }
    }
}

fn degrees(table: &mut Table, world_size: u64) -> Option<Degrees> {
    // Before anything is derived: both check what was stated.
    let split = split(table);
    let virtual_pipeline = virtual_pipeline(table)?;
    let tensor = table.degree(Field::TensorModelParallelSize);
    if tensor == 1 && table.on(Field::SequenceParallel) {
        // It stays as stated; the layout turns it off.
        table.warn(
            Code::NoEffect,
            Field::SequenceParallel,
            "sequence parallelism has no effect with tensor parallel size 1",
        );
        table.remark(Field::SequenceParallel, "off with tensor parallel size 1");
    }
    // Read before it is derived: Layout::new may choose it unless it was stated.
    let expert_tensor = table.count(Field::ExpertTensorParallelSize);
    table.derive(Field::ExpertTensorParallelSize, Int(tensor), "the tensor parallel size, unless given");
    Some(Degrees {
        world_size,
        tensor,
        pipeline: table.degree(Field::PipelineModelParallelSize),
        virtual_pipeline,
        context: table.degree(Field::ContextParallelSize),
        expert: table.degree(Field::ExpertModelParallelSize),
        expert_tensor,
        sequence_parallel: table.on(Field::SequenceParallel),
        rank_order: if table.on(Field::UseTpPpDpMapping) {
            RankOrder::TpCpEpPpDp
        } else {
            RankOrder::TpCpEpDpPp
        },
        // --cp-comm-type may name one kind per layer; the first one is used for all.
        context_kind: match table.words(Field::CpCommType).first().copied() {
            Some("all_gather" | "allgather") => ContextKind::AllGather,
            Some("a2a") => ContextKind::AllToAll,
            Some("a2a+p2p") => ContextKind::AllToAllAndPointToPoint,
            _ => ContextKind::PointToPoint,
        },
        hierarchical_context: table.counts(Field::HierarchicalContextParallelSizes),
        distributed_optimizer_instances: table.degree(Field::NumDistributedOptimizerInstances),
        second_shards: table.count(Field::SecondWeightShards).unwrap_or(0),
        microbatch_group_size: table.count(Field::MicrobatchGroupSizePerVpStage),
        schedule: schedule(table),
        split,
    })
}

/// The stages of the requested split in written-out form, without no-op layers.
fn without_noops(
    table: &Table,
    degrees: &Degrees,
    mtp_num_layers: u64,
) -> Result<Option<String>, Contradiction> {
    let Some(num_layers) = table.count(Field::NumLayers) else { return Ok(None) };
    let noops = super::model::noops(table, num_layers);
    // A written-out layout already omits the layers it wants to omit; `Layout::new` rejects sizes beyond their limits.
    if noops.is_empty()
        || matches!(degrees.split, StageSplit::Layout(_))
        || degrees.pipeline.saturating_mul(degrees.virtual_pipeline) > num_layers
    {
        return Ok(None);
    }
    let (pipeline, virtual_pipeline) = (degrees.pipeline, degrees.virtual_pipeline);
    // When stages are split, no-ops count as layers.
    let map =
        StageMap::new(StageSizes { num_layers, pipeline, virtual_pipeline, mtp_num_layers }, &degrees.split)?;
    let mut stages = Vec::new();
    for stage in map.stages {
        // Chunk c of rank r is the virtual stage c x PP + r.
        for (index, chunk) in stage.chunks.into_iter().enumerate() {
            stages.push((index, chunk.layers));
        }
    }
    // Stable, so that ranks stay in their order.
    stages.sort_by_key(|(index, _)| *index);
    // In Megatron's own notation (`--pipeline-model-parallel-layout`), so that one rule places layers for both.
    let mut text = String::from("E");
    for (stage, (_, layers)) in stages.into_iter().enumerate() {
        if stage > 0 {
            text.push('|');
        }
        // A no-op occupies a position in a stage but has no weights: its stage is shorter, and no layer moves.
        let remaining = layers.filter(|layer| !noops.contains(layer));
        remaining.for_each(|_| text.push('t'));
    }
    (0..mtp_num_layers).for_each(|_| text.push('m'));
    text.push('L');
    Ok(Some(text))
}

fn schedule(table: &Table) -> PipelineSchedule {
    table.chosen().unwrap_or(PipelineSchedule::OneForwardOneBackward)
}

fn split(table: &Table) -> StageSplit {
    let layout = table.word(Field::PipelineModelParallelLayout);
    let first = table.count(Field::DecoderFirstPipelineNumLayers);
    let last = table.count(Field::DecoderLastPipelineNumLayers);
    // Megatron's order: a layout excludes all other ways, stage ends exclude an even split.
    match () {
        () if !layout.is_empty() => StageSplit::Layout(layout.to_owned()),
        () if first.is_some() || last.is_some() => StageSplit::Ends { first, last },
        () => StageSplit::Even {
            account_for_embedding: table.on(Field::AccountForEmbeddingInPipelineSplit),
            account_for_loss: table.on(Field::AccountForLossInPipelineSplit),
        },
    }
}

/// Chunks per rank: stated, or derived from layers per virtual stage (`arguments.py:validate_args`).
fn virtual_pipeline(table: &mut Table) -> Option<u64> {
    let ways = [
        Field::NumLayersPerVirtualPipelineStage,
        Field::NumVirtualStagesPerPipelineRank,
        Field::PipelineModelParallelLayout,
    ];
    let mut given = Vec::new();
    for field in &ways {
        if table.has(*field) {
            given.push(*field);
        }
    }
    // Each implies the others, and Megatron rejects two of them even if they agree.
    if given.len() > 1 {
        let message = listed_names(&given, " and ") + " exclude each other";
        table.refuse(Code::VppGivenTwice, &given, message, "");
        return None;
    }
    if let Some(stages) = table.count(Field::NumVirtualStagesPerPipelineRank) {
        table.derive(
            Field::VirtualPipelineModelParallelSize,
            Int(stages),
            "num_virtual_stages_per_pipeline_rank",
        );
    }
    // Without this flag the number of chunks is stated directly, or is one.
    let Some(per_stage) = table.count(Field::NumLayersPerVirtualPipelineStage) else {
        return Some(table.degree(Field::VirtualPipelineModelParallelSize));
    };
    let uneven = [Field::DecoderFirstPipelineNumLayers, Field::DecoderLastPipelineNumLayers];
    if uneven.into_iter().any(|field| table.has(field)) {
        let fields = [Field::NumLayersPerVirtualPipelineStage, uneven[0], uneven[1]];
        let message =
            "layers per virtual stage cannot be given with a first or last stage of its own size".to_owned();
        let hint = "give --num-virtual-stages-per-pipeline-rank instead";
        table.refuse(Code::VppUneven, &fields, message, hint);
        return None;
    }
    let layers = table.count(Field::NumLayers)?;
    let ends = [Field::AccountForEmbeddingInPipelineSplit, Field::AccountForLossInPipelineSplit];
    // If the split accounts for them, embedding and loss count as one layer each.
    let total = layers + ends.into_iter().map(|field| u64::from(table.on(field))).sum::<u64>();
    let pipeline = table.degree(Field::PipelineModelParallelSize);
    if !total.is_multiple_of(pipeline) {
        // Layout::new reports it, with a value that would work.
        return Some(1);
    }
    let of_rank = total / pipeline;
    if !of_rank.is_multiple_of(per_stage) {
        let fitting = divisors(of_rank);
        let fields =
            [Field::NumLayersPerVirtualPipelineStage, Field::NumLayers, Field::PipelineModelParallelSize];
        let message = format!(
            "the {of_rank} layers of a pipeline rank cannot be split into virtual stages of {per_stage}"
        );
        let hint = format!("layers per virtual stage that divide: {}", listed(&fitting, per_stage));
        table.refuse(Code::LayersOverVpp, &fields, message, &hint);
        return None;
    }
    let chunks = of_rank / per_stage;
    // One chunk is plain 1F1B, and is not shown as a derived setting.
    if chunks > 1 {
        let rule = "layers of a pipeline rank / num_layers_per_virtual_pipeline_stage";
        table.derive(Field::VirtualPipelineModelParallelSize, Int(chunks), rule);
    }
    Some(chunks)
}

/// Records what follows from the layout among the settings.
fn state(table: &mut Table, layout: &Layout) {
    if table.number(Field::NumExperts) > 0 {
        let rule = "world size / (expert TP x EP x PP)";
        table.overrule(Field::ExpertDataParallelSize, Int(layout.expert_data), rule);
    }
    // Only known now: a written-out layout determines its chunks.
    if layout.virtual_pipeline > 1 {
        let rule = "stages of the written-out layout / PP";
        table.derive(Field::VirtualPipelineModelParallelSize, Int(layout.virtual_pipeline), rule);
        let rule = "the pipeline size, unless given";
        table.derive(Field::MicrobatchGroupSizePerVpStage, Int(layout.microbatch_group_size), rule);
    }
}
