//! The four parts checked together: the only way to construct a plan.

use super::plan::Plan;
use super::rules;
use super::{Cluster, Contradiction, Layout, Model, Recipe};

impl Plan {
    /// The plan of the four parts, or every reason why there is none.
    ///
    /// # Errors
    /// All [`Contradiction`]s that hold at once: what Megatron refuses at start, and sizes beyond [`super::limits`].
    pub fn new(
        model: Model,
        cluster: Cluster,
        layout: Layout,
        recipe: Recipe,
    ) -> Result<Self, Vec<Contradiction>> {
        let plan = Self { model, cluster, layout, recipe };
        let refused = rules::refused(&plan);
        if refused.is_empty() { Ok(plan) } else { Err(refused) }
    }
}
