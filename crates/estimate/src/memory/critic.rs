//! A critic in its turn, on the accelerators of the policy.

use super::sums::memory_totals;
use super::totals::Totals;
use shardscope_plan::{Objective, Plan, Recompute, Residence, Rollout};

/// What a critic's training takes on the fullest accelerator: the policy's model with one value in the place of the output layer, its
/// micro-batch and recomputation its own. What the value loss keeps of each token, some bytes, is not counted. None where the critic
/// is elsewhere, or where the software cuts models, which keeps no more of a critic than of the policy.
pub(super) fn critic(plan: &Plan, rollout: &Rollout) -> Option<Totals> {
    let on_them = matches!(rollout.critic, Residence::Device | Residence::Host);
    if !on_them || plan.recipe().software.semantics().cuts_models {
        return None;
    }
    let mut recipe = plan.recipe().clone();
    let mut model = plan.model().clone();
    recipe.rollout = None;
    recipe.tuning.objective = Objective::Classes { labels: 1 };
    if !rollout.critic_recomputes {
        recipe.recompute = Recompute::None;
    }
    match rollout.critic_batch {
        Some(tokens) if recipe.sample_length.is_some() => model.seq_length = tokens,
        Some(sequences) => {
            let micro_batches = (recipe.global_batch_size / sequences.max(1)).max(1);
            let replicas =
                recipe.global_batch_size / (recipe.micro_batch_size * recipe.num_micro_batches).max(1);
            recipe.micro_batch_size = sequences;
            recipe.num_micro_batches = (micro_batches / replicas.max(1)).max(1);
            recipe.global_batch_size = sequences * recipe.num_micro_batches * replicas.max(1);
        }
        None => {}
    }
    let variant = Plan::new(model, plan.cluster().clone(), plan.layout().clone(), recipe).ok()?;
    memory_totals(&variant).into_iter().max_by_key(|totals| totals.peak_reserved)
}
