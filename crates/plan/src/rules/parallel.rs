//! The layout: process groups, stages, interleaving.

use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::hints::divisors;
use crate::{
    Activation, AdapterKernels, Arrangement, AttentionKernel, BaseTraining, Contradiction, DataEngine,
    DpSharding, Field, LinearBias, LinearModule, Lora, Normalization, PipelineSchedule, Plan, RankOrder,
    Recompute,
};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    groups(plan, refusals);
    chunks(plan, refusals);
    micro_batches_of_dualpipe(plan, refusals);
    data_alone(plan, refusals);
    interleaving(plan, refusals);
    deepspeed_stages(plan, refusals);
    rank_order(plan, refusals);
    context(plan, refusals);
    instances(plan, refusals);
    second_shards(plan, refusals);
}

/// DeepSpeed's groups of ranks with second shards, which are all ranks where these are fewer
/// (`deepspeed/utils/groups.py:_create_zero_param_parallel_group`).
fn second_shards(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let (second, ranks) = (layout.second_shards, layout.data * layout.context);
    let whole = second <= 1 || second >= ranks || ranks.is_multiple_of(second);
    let rule = &Rule {
        code: Code::SecondShards,
        fields: &[Field::SecondWeightShards, Field::DataParallelSize],
        sentence: "{} data-parallel ranks cannot be split into groups of {} that hold second shards",
        hint: "",
    };
    refusals.unless(whole, rule, &[ranks, second]);
}

/// The degrees multiply to the world, and the stage map has every stage of every rank.
fn groups(plan: &Plan, refusals: &mut Refusals) {
    let (layout, cluster) = (plan.layout(), plan.cluster());
    let (world, p) = (layout.world_size, layout.pipeline);
    let rule = &Rule {
        code: Code::ClusterSize,
        fields: &[Field::WorldSize, Field::NumNodes, Field::GpusPerNode],
        sentence: "{} nodes of {} GPUs are not the {} ranks of the layout",
        hint: "",
    };
    refusals.unless(cluster.gpus() == world, rule, &[cluster.num_nodes, cluster.gpus_per_node, world]);
    let dense = product(&[layout.tensor, p, layout.context, layout.data]);
    let rule = &Rule {
        code: Code::WorldSize,
        fields: &[Field::WorldSize],
        sentence: "TP x PP x CP x DP = {} is not the world size {}",
        hint: "",
    };
    refusals.unless(dense == world && dense > 0, rule, &[dense, world]);
    let sparse = product(&[layout.expert_tensor, layout.expert, p, layout.expert_data]);
    let moe = plan.model().experts.is_some();
    let rule = &Rule {
        code: Code::ExpertWorldSize,
        fields: &[Field::ExpertModelParallelSize, Field::WorldSize],
        sentence: "expert TP x EP x PP x expert DP = {} is not the world size {}",
        hint: "",
    };
    // A dense model has expert degrees that nothing uses; they are not checked.
    refusals.unless(!moe || sparse == world, rule, &[sparse, world]);
    let stages = &layout.stages.stages;
    let held: u64 = stages.iter().map(crate::Stage::layers).sum();
    let ranks = stages.len() as u64;
    // A map need not come from `Layout::new`, and estimators index stages and chunks without checking.
    let complete = ranks == p
        && stages.iter().all(|stage| stage.chunks.len() as u64 == layout.virtual_pipeline)
        && held == plan.model().num_layers.saturating_mul(layout.copies());
    let rule = &Rule {
        code: Code::StageMap,
        fields: &[Field::PipelineModelParallelSize, Field::NumLayers],
        sentence: "the stages hold {} layers on {} ranks, and should hold {} on {}",
        hint: "",
    };
    refusals.unless(complete, rule, &[held, ranks, plan.model().num_layers, p]);
}

/// Trainers on transformers' modules are estimated with data parallelism, and with sequences split over ranks if
/// flash attention runs: saved activations are then proportional to a rank's tokens, whether heads or blocks are
/// exchanged.
fn data_alone(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let linear = plan.recipe().attention_kernel == AttentionKernel::Flash;
    let context = if linear { 1 } else { layout.context };
    let tensor = if is_dtensor(plan) { 1 } else { layout.tensor };
    // Automodel's own experts are known between ranks of a node, by configurations that DeepEP recommends.
    let dispatched =
        plan.recipe().software.semantics().modules.dispatches_experts && plan.model().experts.is_some();
    let experts = if dispatched { !matches!(layout.expert, 2 | 4 | 8) } else { layout.expert > 1 };
    let cut = experts || [tensor, layout.pipeline, context].iter().any(|size| *size > 1);
    let rule = &Rule {
        code: Code::DataParallelAlone,
        fields: &[
            Field::TensorModelParallelSize,
            Field::PipelineModelParallelSize,
            Field::ContextParallelSize,
            Field::ExpertModelParallelSize,
        ],
        sentence: "not modelled: tensor, pipeline or expert parallelism with modules of transformers, and context \
                   parallelism without flash attention",
        hint: "leave the sizes at 1, or set the software to one with model parallelism",
    };
    refusals.unless(plan.recipe().software.semantics().cuts_models || !cut, rule, &[]);
}

/// Whether DTensor cuts the model as it was recorded: a dense decoder arranged as Llama's, all of which trains or adapters beside its
/// projections do, and of whose keys and values every rank has heads of its own (`parallelizer.py:validate_tp_mesh`).
fn is_dtensor(plan: &Plan) -> bool {
    let (model, recipe) = (plan.model(), plan.recipe());
    let llama = model.arrangement == Arrangement::default()
        && model.normalization == Normalization::RmsNorm
        && model.activation == Activation::Swiglu
        && model.linear_bias != LinearBias::All;
    let dense = model.experts.is_none() && model.latent.is_none() && model.vision.is_none();
    let tuned = match recipe.tuning.lora {
        None => recipe.tuning.base == BaseTraining::All,
        Some(lora) => adapted_by_dtensor(plan, lora),
    };
    let second = recipe.transformers.engine == DataEngine::Fsdp2;
    let shared = model.num_query_groups.is_multiple_of(plan.layout().tensor);
    recipe.transformers.dtensor_plan && llama && dense && tuned && second && shared
}

/// Whether both matrices of adapters are cut as they were recorded, of a sequence that is whole on every rank.
fn adapted_by_dtensor(plan: &Plan, lora: Lora) -> bool {
    let (recipe, layout) = (plan.recipe(), plan.layout());
    let ends = [LinearModule::OutputLayer, LinearModule::Experts, LinearModule::Router];
    let beside = !ends.iter().any(|module| lora.modules.has(*module)) && !recipe.tuning.embedding;
    let plain =
        !lora.dora && !lora.dropout && !lora.drops_result && lora.kernels == AdapterKernels::default();
    let alone =
        recipe.tuning.base == BaseTraining::None && !matches!(recipe.recompute, Recompute::Selective(_));
    let own = lora.dtype == recipe.params_dtype && lora.rank.is_multiple_of(layout.tensor);
    beside && plain && alone && own && !layout.sequence_parallel
}

fn product(degrees: &[u64]) -> u64 {
    // If it saturates, it equals no world size that passed the bounds.
    degrees.iter().fold(1_u64, |product, degree| product.saturating_mul(*degree))
}

/// Settings that determine which schedule runs over how many chunks.
const CHUNKS: &[Field] =
    &[Field::VirtualPipelineModelParallelSize, Field::PipelineSchedule, Field::PipelineModelParallelSize];

/// Every rank must hold exactly as many chunks as its schedule runs: a chunk that did not run would cost no time. The
/// zero-bubble orders of one chunk and those of two lay their chunks out themselves (zero-bubble fork,
/// `megatron/core/zbpp_utils.py:validate_arguments`), and DualPipe's two directions are two stages of one chunk on an
/// even number of ranks (`dualpipe/dualpipe.py:step`).
fn chunks(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let (p, v) = (layout.pipeline, layout.virtual_pipeline);
    // The requirements of a multi-stage schedule have no meaning on one stage.
    if p < 2 {
        let rule = &Rule {
            code: Code::VppWithoutPp,
            fields: INTERLEAVING,
            sentence: "{} chunks per rank need PP greater than 1",
            hint: "set the virtual pipeline size to 1, or use more pipeline ranks",
        };
        refusals.unless(v <= 1, rule, &[v]);
        return;
    }
    let name = layout.schedule.name();
    if layout.schedule == PipelineSchedule::DualPipe && !p.is_multiple_of(2) {
        let message = format!("{name} runs from both ends of an even number of stages, and PP is {p}");
        let fields = [Field::PipelineModelParallelSize, Field::PipelineSchedule];
        refusals.push(Contradiction::new(Code::DualpipeStages, &fields, message).nearest(Some(p + 1)));
        return;
    }
    if let Some(own) = layout.schedule.own_chunks()
        && own != v
    {
        let message = format!("{name} runs {own} model chunks on each rank, and VPP is {v}");
        let hint = "leave the virtual pipeline size out: the schedule lays its chunks out itself";
        refusals.push(Contradiction::new(Code::ScheduleChunks, CHUNKS, message).hint(hint).nearest(Some(1)));
    }
}

/// DualPipe fills its pipeline from both ends before it alternates (`num_chunks >= num_ranks * 2` in
/// `dualpipe/dualpipe.py` and `dualpipev.py`), half of the micro-batches from each.
fn micro_batches_of_dualpipe(plan: &Plan, refusals: &mut Refusals) {
    let (layout, m) = (plan.layout(), plan.recipe().num_micro_batches);
    let even = match layout.schedule {
        PipelineSchedule::DualPipe => true,
        PipelineSchedule::DualPipeV => false,
        _ => return,
    };
    let least = layout.pipeline * 2;
    if layout.pipeline < 2 || (m >= least && !(even && m % 2 == 1)) {
        return;
    }
    let name = layout.schedule.name();
    let number = if even { "an even number of at least" } else { "at least" };
    let message =
        format!("{name} over PP {} needs {number} {least} micro-batches, and there are {m}", layout.pipeline);
    // Suggest an even number even where an odd one would do: DualPipe requires it and DualPipeV accepts it.
    let near = m.max(least).next_multiple_of(2);
    let batch = plan.recipe().micro_batch_size.saturating_mul(layout.data).saturating_mul(near);
    let fields = [Field::GlobalBatchSize, Field::PipelineModelParallelSize, Field::PipelineSchedule];
    let hint = format!("a global batch of {batch}");
    refusals.push(
        Contradiction::new(Code::DualpipeMicroBatches, &fields, message).hint(hint).nearest(Some(batch)),
    );
}

/// Settings that interleaving depends on.
const INTERLEAVING: &[Field] =
    &[Field::NumLayersPerVirtualPipelineStage, Field::PipelineModelParallelSize, Field::OverlapP2pComm];
/// Settings that its groups of micro-batches follow from.
const MICRO_BATCHES: &[Field] =
    &[Field::GlobalBatchSize, Field::MicrobatchGroupSizePerVpStage, Field::PipelineModelParallelSize];

/// DeepSpeed's pipeline engine supports only ZeRO stages 0 and 1 (`runtime/pipe/engine.py:PipelineEngine.__init__`).
fn deepspeed_stages(plan: &Plan, refusals: &mut Refusals) {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    let rule = &Rule {
        code: Code::ZeroOfPipelines,
        fields: &[Field::ZeroStage, Field::PipelineModelParallelSize],
        sentence: "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism in DeepSpeed",
        hint: "set the ZeRO stage to 1, or the pipeline size to 1",
    };
    let shared = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    let piped = layout.pipeline > 1 && recipe.software.semantics().deepspeed_engine;
    refusals.unless(!(shared && piped), rule, &[]);
}

/// Interleaving needs a pipeline, and enough micro-batches (`schedules.py`).
fn interleaving(plan: &Plan, refusals: &mut Refusals) {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    let (p, v) = (layout.pipeline, layout.virtual_pipeline);
    // Other schedules lay out their own chunks, without groups of micro-batches.
    if v <= 1 || p < 2 || layout.schedule != PipelineSchedule::OneForwardOneBackward {
        return;
    }
    let rule = &Rule {
        code: Code::VppOverlap,
        fields: INTERLEAVING,
        sentence: "interleaving over PP 2 needs overlapped pipeline sends",
        hint: "leave --no-overlap-p2p-communication out, or take PP greater than 2",
    };
    refusals.unless(p != 2 || recipe.overlap.pipeline, rule, &[]);
    let (m, g) = (recipe.num_micro_batches, layout.microbatch_group_size);
    let slice = recipe.micro_batch_size.saturating_mul(layout.data);
    // `schedules.py:forward_backward_pipelining_with_interleaving`, which raises in both cases.
    if g < p || g > m {
        let rule = &Rule {
            code: Code::VppMicroBatches,
            fields: MICRO_BATCHES,
            sentence: "interleaving takes micro-batches in groups of {}: at least PP {}, at most the {} of a step",
            hint: "a global batch of at least {}",
        };
        let least = slice.saturating_mul(g.max(p));
        refusals.refuse(rule, &[g, p, m, least]).nearest = Some(least);
    } else if m % g != 0 && m % g < p {
        let rule = &Rule {
            code: Code::VppMicroBatches,
            fields: MICRO_BATCHES,
            sentence: "{} micro-batches in groups of {} leave {}, fewer than PP {}",
            hint: "a global batch of {} gives a multiple of {} micro-batches",
        };
        let near = crate::hints::nearest_multiple(m, g).saturating_mul(slice);
        refusals.refuse(rule, &[m, g, m % g, p, near, g]).nearest = Some(near);
    }
}

/// `--use-tp-pp-dp-mapping` needs dense and expert data-parallel sizes to be the same (`parallel_state.py`).
fn rank_order(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    if layout.rank_order == RankOrder::TpCpEpDpPp || layout.pipeline == 1 {
        return;
    }
    // If the pipeline is not outermost, its groups would differ between the dense and the expert numbering.
    let (dense, experts) = (layout.tensor * layout.context, layout.expert_tensor * layout.expert);
    let rule = &Rule {
        code: Code::RankOrder,
        fields: &[Field::UseTpPpDpMapping, Field::ContextParallelSize, Field::ExpertModelParallelSize],
        sentence: "--use-tp-pp-dp-mapping with PP {} needs TP x CP = {} and expert TP x EP = {} to be equal",
        hint: "",
    };
    refusals.unless(dense == experts, rule, &[layout.pipeline, dense, experts]);
}

fn context(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let levels = &layout.hierarchical_context;
    let product = product(levels);
    let rule = &Rule {
        code: Code::HierarchicalCp,
        fields: &[Field::HierarchicalContextParallelSizes, Field::ContextParallelSize],
        sentence: "the levels of context parallelism multiply to {}, and CP is {}",
        hint: "",
    };
    refusals.unless(levels.is_empty() || product == layout.context, rule, &[product, layout.context]);
}

fn instances(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    // Instances partition the ranks over which dense states are sharded, including context-parallel ranks.
    let (n, replicas) = (layout.distributed_optimizer_instances, layout.data * layout.context);
    if n <= 1 {
        return;
    }
    let off = plan.recipe().dp_sharding == DpSharding::Replicated;
    let rule = &Rule {
        code: Code::InstancesWithoutOptimizer,
        fields: &[Field::NumDistributedOptimizerInstances, Field::DataParallelSize],
        sentence: "{} instances of the distributed optimizer, which is off",
        hint: "add --use-distributed-optimizer",
    };
    refusals.unless(!off, rule, &[n]);
    if !replicas.is_multiple_of(n) {
        let rule = &Rule {
            code: Code::Instances,
            fields: &[Field::NumDistributedOptimizerInstances, Field::DataParallelSize],
            sentence: "{} data-parallel ranks cannot be split into {} instances of the distributed optimizer",
            hint: "",
        };
        let nearest = crate::hints::nearest_of(&divisors(replicas), n);
        refusals.refuse(rule, &[replicas, n]).nearest = nearest;
    } else if plan.model().experts.is_some() && !layout.expert_data.is_multiple_of(n) {
        // `parallel_state.py:initialize_model_parallel`.
        let rule = &Rule {
            code: Code::Instances,
            fields: &[Field::NumDistributedOptimizerInstances, Field::ExpertModelParallelSize],
            sentence: "{} expert data-parallel ranks cannot be split into {} instances of the distributed optimizer",
            hint: "",
        };
        let nearest = crate::hints::nearest_of(&divisors(layout.expert_data), n);
        refusals.refuse(rule, &[layout.expert_data, n]).nearest = nearest;
    }
}
