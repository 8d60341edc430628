//! A valid run: model, cluster, layout and recipe, checked together by [`super::checked`].

use super::cluster::Cluster;
use super::layout::Layout;
use super::marks::Marks;
use super::model::Model;
use super::optimizer::DpSharding;
use super::recipe::Recipe;

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

    /// Batch, precision, optimizer and software.
    #[must_use]
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }
}
