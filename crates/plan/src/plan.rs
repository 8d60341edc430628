//! A valid run: model, cluster, layout and recipe, checked together by [`super::checked`].

use super::cluster::Cluster;
use super::layout::Layout;
use super::marks::Marks;
use super::model::Model;
use super::optimizer::DpSharding;
use super::recipe::Recipe;
use super::software::{EndsGathered, GradientBuffers};
use super::tuning::DataEngine;

/// A valid run. Code that holds one may divide without checking for zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(super) model: Model,
    pub(super) cluster: Cluster,
    pub(super) layout: Layout,
    pub(super) recipe: Recipe,
}

impl Plan {
    /// The same plan with different marks, which change no figure.
    #[must_use]
    pub fn marked(mut self, marks: Marks) -> Self {
        self.recipe.marks = marks;
        self
    }

    /// The transformer's shape.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The machines.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// How the work is sharded.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Tokens that attention spans: a sequence, or the longest sample of a pack.
    #[must_use]
    pub fn attended_length(&self) -> u64 {
        let sequence = self.model.seq_length;
        self.recipe.sample_length.map_or(sequence, |sample| sample.min(sequence))
    }

    /// Whether gradients are reduced after every micro-batch rather than once per step, because each rank keeps only
    /// its own part of them (ZeRO-2 and 3: DeepSpeed's
    /// `stage_1_and_2.py:reduce_independent_p_g_buckets_and_remove_grads`, Megatron's
    /// `megatron_fsdp.py:grad_reduce_every_bprop`).
    #[must_use]
    pub fn reduces_each_backward(&self) -> bool {
        let recipe = &self.recipe;
        let shared = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
        let held = self.layout.pipeline > 1 && recipe.software.semantics().pipelines_hold_reductions;
        // A trainer may wait for a step's last micro-batch and hold its unsharded gradients until then.
        shared && !held && !recipe.transformers.defers_reduction
    }

    /// Whether weights are held as shards, each unit of which (a layer, what lies outside of layers) is gathered when it is
    /// used: ZeRO-3, and stage 2 of PyTorch's FSDP, which keeps a unit gathered until its backward is over
    /// (`SHARD_GRAD_OP`, `reshard_after_forward=False`). Any other stage 2 holds whole weights.
    #[must_use]
    pub fn gathers_units(&self) -> bool {
        match self.recipe.dp_sharding {
            DpSharding::Parameters => true,
            DpSharding::Gradients => self.recipe.is_of_torch_fsdp(),
            DpSharding::Replicated | DpSharding::OptimizerStates => false,
        }
    }

    /// Whether a unit stays gathered from forward to backward (FSDP's stage 2).
    #[must_use]
    pub fn stays_gathered(&self) -> bool {
        self.recipe.dp_sharding == DpSharding::Gradients && self.gathers_units()
    }

    /// What stays gathered from forward to backward outside of layers, where layers are freed. FSDP1 frees all units but its root
    /// (`_runtime_utils.py:_post_forward_reshard`); FSDP2 frees the root too if it is told to, which accelerate does.
    #[must_use]
    pub fn ends_gathered(&self) -> EndsGathered {
        let semantics = self.recipe.software.semantics();
        let first = semantics.eager_modules && self.recipe.transformers.engine == DataEngine::Fsdp1;
        if first { EndsGathered::Root } else { semantics.ends_gathered }
    }

    /// Whether shards of gradients are summed across replica groups behind each of their reductions, as PyTorch's FSDP does
    /// (`_fsdp_param_group.py:post_backward`, `_runtime_utils.py:_reduce_grad`), and not once a step, as Megatron's
    /// (`megatron_fsdp.py:_root_post_backward`).
    #[must_use]
    pub fn sums_groups_at_once(&self) -> bool {
        self.gathers_units()
            && self.recipe.software.semantics().gradient_buffers != GradientBuffers::MegatronCore
    }

    /// Whether what a forward pass gathers is freed behind every backward pass, so that each micro-batch gathers it again.
    /// FSDP2 frees it whether or not gradients are reduced (`_fsdp_param_group.py:post_backward`) unless it is told to keep
    /// it (`set_reshard_after_backward`), as pipelines tell it up to their last micro-batch
    /// (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync`); FSDP1 keeps it in its stage 2 for as long as
    /// gradients wait (`_runtime_utils.py:_should_free_in_backward`).
    #[must_use]
    pub fn gathers_each_micro_batch(&self) -> bool {
        let transformers = &self.recipe.transformers;
        let piped = self.layout.pipeline > 1 && self.recipe.software.semantics().pipelines_hold_reductions;
        let waits = transformers.engine == DataEngine::Fsdp1 && transformers.defers_reduction;
        !self.stays_gathered() || !(piped || waits || transformers.keeps_gathered)
    }

    /// Batch, precision, optimizer and software.
    #[must_use]
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }
}
