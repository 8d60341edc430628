//! The four parts checked together: the one door through which a plan comes to be.

use super::rules;
use super::{Cluster, Contradiction, Layout, Marks, Model, Recipe};

/// A run that can exist. Whoever holds one may divide without asking.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    model: Model,
    cluster: Cluster,
    layout: Layout,
    recipe: Recipe,
}

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

    /// Batch, precision, optimizer and software.
    #[must_use]
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }
}
