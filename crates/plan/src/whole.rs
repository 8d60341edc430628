//! A run that can exist: model, cluster, layout and recipe, which [`super::checked`] has checked together.

use super::cluster::Cluster;
use super::layout::Layout;
use super::marks::Marks;
use super::model::Model;
use super::optimizer::DpSharding;
use super::recipe::Recipe;

/// A run that can exist. Whoever holds one may divide without asking.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(super) model: Model,
    pub(super) cluster: Cluster,
    pub(super) layout: Layout,
    pub(super) recipe: Recipe,
}

impl Plan {
    /// The same plan with other marks, which change no figure.
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

    /// How the work is cut.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Tokens that attention reaches over: a sequence, or the longest sample of a pack.
    #[must_use]
    pub fn attended_length(&self) -> u64 {
        let sequence = self.model.seq_length;
        self.recipe.sample_length.map_or(sequence, |sample| sample.min(sequence))
    }

    /// Whether gradients are reduced behind every micro-batch and not once a step, as each rank keeps its part of them alone
    /// (ZeRO-2 and 3: DeepSpeed's `stage_1_and_2.py:reduce_independent_p_g_buckets_and_remove_grads`, Megatron's
    /// `megatron_fsdp.py:grad_reduce_every_bprop`).
    #[must_use]
    pub fn reduces_each_backward(&self) -> bool {
        let recipe = &self.recipe;
        let shared = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
        let held = self.layout.pipeline > 1 && recipe.software.semantics().pipelines_hold_reductions;
        // A trainer may wait for a step's last micro-batch, however its whole gradients are held until then.
        shared && !held && !recipe.transformers.defers_reduction
    }

    /// Batch, precision, optimizer and software.
    #[must_use]
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }
}
