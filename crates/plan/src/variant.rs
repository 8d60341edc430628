//! A plan with a different layout: what advice and search vary.

use super::{
    Cluster, Contradiction, Degrees, DpSharding, Field, Fp8, HostOptimizer, Layout, Model, OffloadModules,
    Overlap, PipelineSchedule, Plan, RankOrder, Recipe, Recompute, Software, StageSplit,
};
use shardscope_source::Code;

/// What advice and search vary. Everything else stays as in the plan it starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Tensor parallel size.
    pub tensor: u64,
    /// Pipeline parallel size.
    pub pipeline: u64,
    /// Model chunks per rank.
    pub virtual_pipeline: u64,
    /// Micro-batches that a chunk takes in a row; the pipeline size unless given.
    pub group: Option<u64>,
    /// Order of micro-batches on a stage.
    pub schedule: PipelineSchedule,
    /// How layers are spread over the stages. A split with explicit sizes for some stages is dropped if pipeline,
    /// chunks or schedule differ from those it was written for.
    pub split: StageSplit,
    /// Context parallel size.
    pub context: u64,
    /// Expert parallel size.
    pub expert: u64,
    /// Expert tensor parallel size.
    pub expert_tensor: u64,
    /// Sequence parallelism.
    pub sequence_parallel: bool,
    /// Order in which ranks are numbered.
    pub rank_order: RankOrder,
    /// Sequences of a micro-batch.
    pub micro_batch_size: u64,
    /// What is recomputed.
    pub recompute: Recompute,
    /// What data-parallel replicas shard.
    pub sharding: DpSharding,
    /// Which communication overlaps with compute. Sends between stages do so exactly if chunks are interleaved.
    pub overlap: Overlap,
    /// Matrix products in 8 or 4 bits.
    pub fp8: Option<Fp8>,
    /// Whether optimizer states, or a part of them, stay on the host.
    pub optimizer_on_host: bool,
    /// Groups of replicas, each of which holds a full copy of the optimizer states, or of everything that is sharded.
    pub instances: u64,
    /// Modules of a layer whose saved tensors are offloaded to the host.
    pub offloaded: OffloadModules,
    /// The software whose settings express it; never varied.
    pub software: Software,
    /// Whether the model has routed experts; never varied.
    pub has_experts: bool,
}

impl Variant {
    /// The variant that `plan` is.
    #[must_use]
    pub fn from_plan(plan: &Plan) -> Self {
        let (layout, recipe) = (plan.layout(), plan.recipe());
        Self {
            tensor: layout.tensor,
            pipeline: layout.pipeline,
            virtual_pipeline: layout.virtual_pipeline,
            // A group equal to the pipeline size is the default, and follows the pipeline size when that changes.
            group: Some(layout.microbatch_group_size).filter(|group| *group != layout.pipeline),
            schedule: layout.schedule,
            split: layout.split.clone(),
            context: layout.context,
            expert: layout.expert,
            expert_tensor: layout.expert_tensor,
            sequence_parallel: layout.sequence_parallel,
            rank_order: layout.rank_order,
            micro_batch_size: recipe.micro_batch_size,
            recompute: recipe.recompute.clone(),
            sharding: recipe.dp_sharding,
            overlap: recipe.overlap,
            fp8: recipe.fp8.clone(),
            optimizer_on_host: recipe.optimizer_on_host(),
            instances: layout.distributed_optimizer_instances,
            offloaded: recipe.offload.modules,
            software: recipe.software,
            has_experts: plan.model().experts.is_some(),
        }
    }

    /// `plan` with this variant in place of its own; `None` if Megatron would refuse it.
    #[must_use]
    pub fn apply(&self, plan: &Plan) -> Option<Plan> {
        self.checked(plan).ok()
    }

    /// The same, with every reason for refusal as the error.
    ///
    /// # Errors
    /// What Megatron refuses at start.
    pub fn checked(&self, plan: &Plan) -> Result<Plan, Vec<Contradiction>> {
        self.checked_on(plan, plan.model().clone(), plan.cluster().clone())
    }

    /// The same for `model` on `cluster` in place of the plan's own: a different sequence length or different
    /// machines.
    ///
    /// # Errors
    /// What Megatron refuses at start.
    pub fn checked_on(
        &self,
        plan: &Plan,
        mut model: Model,
        cluster: Cluster,
    ) -> Result<Plan, Vec<Contradiction>> {
        let layout = self.layout(plan, &model, cluster.gpus())?;
        let mut recipe = plan.recipe().clone();
        // Checked here and not in the rules, because this division gives the number of micro-batches.
        let batch = self.micro_batch_size.saturating_mul(layout.data);
        if batch == 0 || !recipe.global_batch_size.is_multiple_of(batch) {
            let message = format!(
                "global batch {} is not a multiple of micro-batch {} x DP {}",
                recipe.global_batch_size, self.micro_batch_size, layout.data
            );
            let fields = [Field::MicroBatchSize, Field::GlobalBatchSize];
            return Err(vec![Contradiction::new(Code::GlobalBatch, &fields, message)]);
        }
        recipe.micro_batch_size = self.micro_batch_size;
        recipe.num_micro_batches = recipe.global_batch_size / batch;
        recipe.recompute = self.recompute.clone();
        recipe.dp_sharding = self.sharding;
        recipe.overlap = self.overlap;
        // Unless something else is stated for the plan's own chunks, sends overlap exactly if chunks are interleaved.
        let same_chunks = (self.pipeline, self.virtual_pipeline)
            == (plan.layout().pipeline, plan.layout().virtual_pipeline);
        recipe.overlap.pipeline = if same_chunks { self.overlap.pipeline } else { self.virtual_pipeline > 1 };
        // `--tp-comm-overlap` without sequence parallelism would be refused.
        recipe.overlap.tensor &= layout.sequence_parallel;
        recipe.fp8.clone_from(&self.fp8);
        self.move_optimizer(&mut recipe);
        recipe.offload.modules = self.offloaded;
        // The vocabulary is padded to a multiple of the tensor size, so its rows change with the tensor size.
        if let Some(padding) = model.vocab_padding {
            model.padded_vocab_size = padding.padded(self.tensor);
        }
        Plan::new(model, cluster, layout, recipe)
    }

    /// `plan` with this variant's recomputation, sharding and overlap; its degrees and sizes are assumed to be the
    /// plan's own.
    ///
    /// # Errors
    /// What Megatron refuses at start.
    pub fn retuned(&self, plan: &Plan) -> Result<Plan, Vec<Contradiction>> {
        let mut recipe = plan.recipe().clone();
        recipe.recompute = self.recompute.clone();
        recipe.dp_sharding = self.sharding;
        let pipeline = recipe.overlap.pipeline;
        recipe.overlap = Overlap { pipeline, ..self.overlap };
        recipe.overlap.tensor &= plan.layout().sequence_parallel;
        Plan::new(plan.model().clone(), plan.cluster().clone(), plan.layout().clone(), recipe)
    }

    /// Moves the optimizer states to the host or back, if they are not where this variant wants them, through the
    /// option that the software has.
    fn move_optimizer(&self, recipe: &mut Recipe) {
        if recipe.optimizer_on_host() == self.optimizer_on_host {
            return;
        }
        // Both options are cleared; each software knows only one of them.
        (recipe.offload.optimizer, recipe.optimizer.cpu_offload_fraction) = (false, 0.0);
        match recipe.software.semantics().offers.host_optimizer {
            HostOptimizer::Fraction if self.optimizer_on_host => {
                recipe.optimizer.cpu_offload_fraction = 1.0;
                // Megatron asserts it beside `--optimizer-cpu-offload`.
                recipe.optimizer.precision_aware = true;
            }
            HostOptimizer::All => recipe.offload.optimizer = self.optimizer_on_host,
            HostOptimizer::Fraction | HostOptimizer::Absent => {}
        }
    }

    fn layout(&self, plan: &Plan, model: &Model, world_size: u64) -> Result<Layout, Vec<Contradiction>> {
        let old = plan.layout();
        let degrees = Degrees {
            world_size,
            tensor: self.tensor,
            pipeline: self.pipeline,
            virtual_pipeline: match self.schedule.own_chunks() {
                // If 1 is requested, `Layout::new` gives these schedules the chunks that they lay out themselves.
                Some(own) if own == self.virtual_pipeline => 1,
                _ => self.virtual_pipeline,
            },
            context: self.context,
            expert: self.expert,
            expert_tensor: Some(self.expert_tensor),
            sequence_parallel: self.sequence_parallel,
            rank_order: self.rank_order,
            context_kind: old.context_kind,
            // The levels multiply to one size and would be refused for any other.
            hierarchical_context: if self.context == old.context {
                old.hierarchical_context.clone()
            } else {
                Vec::new()
            },
            distributed_optimizer_instances: self.instances,
            second_shards: old.second_shards,
            microbatch_group_size: self.group.filter(|_| self.pipeline == old.pipeline),
            schedule: self.schedule,
            split: self.split_beside(&Self::from_plan(plan)),
        };
        Layout::new(&degrees, model.num_layers, model.mtp_num_layers)
    }

    /// The effective split when varied from `other`: stages listed for other sizes become even.
    #[must_use]
    pub fn split_beside(&self, other: &Self) -> StageSplit {
        let cut = |of: &Self| (of.pipeline, of.virtual_pipeline, of.schedule);
        // A split that the variant changed itself was written for its own stages.
        let stale = self.split == other.split && cut(self) != cut(other);
        match &self.split {
            StageSplit::Ends { .. } | StageSplit::Layout(_) if stale => StageSplit::EVEN,
            split => split.clone(),
        }
    }
}
