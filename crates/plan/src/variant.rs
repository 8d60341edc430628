//! A plan with another cut: the degrees, batch, sharding and recomputation that advice and search vary.

use super::{
    Degrees, DpSharding, Field, Layout, PipelineSchedule, Plan, Recompute, RecomputeModule, StageSplit,
};

/// What advice and search vary. Everything else stays as in the plan it starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Tensor parallel size.
    pub tensor: u64,
    /// Pipeline parallel size.
    pub pipeline: u64,
    /// Model chunks per rank.
    pub virtual_pipeline: u64,
    /// Order of micro-batches on a stage.
    pub schedule: PipelineSchedule,
    /// Context parallel size.
    pub context: u64,
    /// Expert parallel size.
    pub expert: u64,
    /// Expert tensor parallel size.
    pub expert_tensor: u64,
    /// Sequence parallelism.
    pub sequence_parallel: bool,
    /// Sequences of a micro-batch.
    pub micro_batch_size: u64,
    /// What is recomputed.
    pub recompute: Recompute,
    /// What data-parallel replicas share.
    pub sharding: DpSharding,
}

impl Variant {
    /// The variant that `plan` is.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let layout = plan.layout();
        Self {
            tensor: layout.tensor,
            pipeline: layout.pipeline,
            virtual_pipeline: layout.virtual_pipeline,
            schedule: layout.schedule,
            context: layout.context,
            expert: layout.expert,
            expert_tensor: layout.expert_tensor,
            sequence_parallel: layout.sequence_parallel,
            micro_batch_size: plan.recipe().micro_batch_size,
            recompute: plan.recipe().recompute.clone(),
            sharding: plan.recipe().dp_sharding,
        }
    }

    /// `plan` with this variant in place of its own; none where Megatron would refuse it.
    #[must_use]
    pub fn apply(&self, plan: &Plan) -> Option<Plan> {
        let layout = self.layout(plan)?;
        let mut recipe = plan.recipe().clone();
        let batch = self.micro_batch_size.checked_mul(layout.data)?;
        if batch == 0 || !recipe.global_batch_size.is_multiple_of(batch) {
            return None;
        }
        recipe.micro_batch_size = self.micro_batch_size;
        recipe.num_micro_batches = recipe.global_batch_size / batch;
        recipe.recompute = self.recompute.clone();
        recipe.dp_sharding = self.sharding;
        recipe.overlap.pipeline = layout.virtual_pipeline > 1;
        recipe.overlap.tensor &= layout.sequence_parallel;
        let mut model = plan.model().clone();
        if let Some(padding) = model.vocab_padding {
            model.padded_vocab_size = padding.padded(self.tensor);
        }
        Plan::new(model, plan.cluster().clone(), layout, recipe).ok()
    }

    fn layout(&self, plan: &Plan) -> Option<Layout> {
        let old = plan.layout();
        let model = plan.model();
        let same_pipeline = (self.pipeline, self.virtual_pipeline, self.schedule)
            == (old.pipeline, old.virtual_pipeline, old.schedule);
        let degrees = Degrees {
            world_size: old.world_size,
            tensor: self.tensor,
            pipeline: self.pipeline,
            virtual_pipeline: match self.schedule.own_chunks() {
                Some(own) if own == self.virtual_pipeline => 1,
                _ => self.virtual_pipeline,
            },
            context: self.context,
            expert: self.expert,
            expert_tensor: Some(self.expert_tensor),
            sequence_parallel: self.sequence_parallel,
            rank_order: old.rank_order,
            context_kind: old.context_kind,
            hierarchical_context: if self.context == old.context {
                old.hierarchical_context.clone()
            } else {
                Vec::new()
            },
            distributed_optimizer_instances: old.distributed_optimizer_instances,
            microbatch_group_size: (self.pipeline == old.pipeline).then_some(old.microbatch_group_size),
            schedule: self.schedule,
            split: StageSplit::Even { account_for_embedding: false, account_for_loss: false },
        };
        if !same_pipeline {
            return Layout::new(&degrees, model.num_layers, model.mtp_num_layers).ok();
        }
        // The stages stay as they are, however uneven; the even split only carries the degrees.
        let chunks = self.pipeline * self.virtual_pipeline;
        let mut layout =
            Layout::new(&degrees, model.num_layers.next_multiple_of(chunks), model.mtp_num_layers).ok()?;
        layout.stages = old.stages.clone();
        Some(layout)
    }

    /// The settings, by Megatron's names, that differ from those of `other`.
    #[must_use]
    pub fn changes_from(&self, other: &Self) -> Vec<(Field, String)> {
        let mut changes = Vec::new();
        let mut change = |field: Field, ours: u64, theirs: u64| {
            if ours != theirs {
                changes.push((field, ours.to_string()));
            }
        };
        change(Field::TensorModelParallelSize, self.tensor, other.tensor);
        change(Field::PipelineModelParallelSize, self.pipeline, other.pipeline);
        change(Field::VirtualPipelineModelParallelSize, self.virtual_pipeline, other.virtual_pipeline);
        change(Field::ContextParallelSize, self.context, other.context);
        change(Field::ExpertModelParallelSize, self.expert, other.expert);
        // Not given, it is the tensor size.
        if self.expert_tensor != self.tensor {
            change(Field::ExpertTensorParallelSize, self.expert_tensor, other.expert_tensor);
        }
        change(Field::MicroBatchSize, self.micro_batch_size, other.micro_batch_size);
        if self.virtual_pipeline > 1 && other.virtual_pipeline <= 1 {
            // Interleaving over two stages needs it, and Megatron-LM of 2023 has it off.
            changes.push((Field::OverlapP2pComm, "true".to_owned()));
        }
        if self.schedule != other.schedule {
            changes.push((Field::PipelineSchedule, self.schedule.name().to_owned()));
        }
        if self.sequence_parallel != other.sequence_parallel {
            changes.push((Field::SequenceParallel, self.sequence_parallel.to_string()));
        }
        if self.sharding != other.sharding {
            changes.push(match self.sharding {
                DpSharding::Replicated => (Field::UseDistributedOptimizer, "false".to_owned()),
                DpSharding::OptimizerStates => (Field::UseDistributedOptimizer, "true".to_owned()),
                sharding => (Field::ZeroStage, sharding.zero_stage().to_string()),
            });
        }
        if self.recompute != other.recompute {
            changes.extend(recompute_settings(&self.recompute));
        }
        changes
    }
}

/// The flags of a recomputation.
fn recompute_settings(recompute: &Recompute) -> Vec<(Field, String)> {
    let full = |method: &str, num_layers: u64| {
        vec![
            (Field::RecomputeGranularity, "full".to_owned()),
            (Field::RecomputeMethod, method.to_owned()),
            (Field::RecomputeNumLayers, num_layers.to_string()),
        ]
    };
    match recompute {
        // An empty value takes the flag back.
        Recompute::None => vec![(Field::RecomputeGranularity, String::new())],
        Recompute::Selective(modules) => {
            let names: Vec<&str> = modules.iter().copied().map(module_name).collect();
            vec![
                (Field::RecomputeGranularity, "selective".to_owned()),
                (Field::RecomputeModules, names.join(" ")),
            ]
        }
        Recompute::Uniform { num_layers, .. } => full("uniform", *num_layers),
        Recompute::Block { num_layers, .. } => full("block", *num_layers),
    }
}

/// The name of `--recompute-modules`.
fn module_name(module: RecomputeModule) -> &'static str {
    match module {
        RecomputeModule::CoreAttention => "core_attn",
        RecomputeModule::MoeActivation => "moe_act",
        RecomputeModule::LayerNorm => "layernorm",
        RecomputeModule::MlaUpProjection => "mla_up_proj",
        RecomputeModule::Mlp => "mlp",
        RecomputeModule::Moe => "moe",
        RecomputeModule::SharedExperts => "shared_experts",
    }
}
