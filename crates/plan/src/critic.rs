//! The plan of a critic beside a policy.

use crate::{Contradiction, Objective, Plan, Recompute, Residence};

impl Plan {
    /// The training of a critic on the policy's accelerators: the policy's model with one value in the place of the output layer, its
    /// micro-batch and recomputation its own; or why that could not run. None where the critic is elsewhere, or where the software cuts
    /// models, which keeps no more of a critic than of the policy.
    #[must_use]
    pub fn critic(&self) -> Option<Result<Self, Vec<Contradiction>>> {
        let rollout = self.recipe.rollout.as_ref()?;
        let on_them = matches!(rollout.critic, Residence::Device | Residence::Host);
        if !on_them || self.recipe.software.semantics().cuts_models {
            return None;
        }
        let mut recipe = self.recipe.clone();
        let mut model = self.model.clone();
        recipe.rollout = None;
        recipe.tuning.objective = Objective::Classes { labels: 1 };
        if !rollout.critic_recomputes {
            recipe.recompute = Recompute::None;
        }
        match rollout.critic_batch {
            Some(tokens) if recipe.sample_length.is_some() => {
                model.seq_length = tokens;
                // Positions of a pack begin anew with each of its samples.
                model.max_position_embeddings = model.max_position_embeddings.max(tokens);
            }
            Some(sequences) => {
                let micro_batches = (recipe.global_batch_size / sequences.max(1)).max(1);
                let replicas =
                    recipe.global_batch_size / (recipe.micro_batch_size * recipe.num_micro_batches).max(1);
                recipe.micro_batch_size = sequences;
                recipe.num_micro_batches = (micro_batches / replicas.max(1)).max(1);
                recipe.global_batch_size =
                    sequences.saturating_mul(recipe.num_micro_batches).saturating_mul(replicas.max(1));
            }
            None => {}
        }
        Some(Self::new(model, self.cluster.clone(), self.layout.clone(), recipe))
    }
}
