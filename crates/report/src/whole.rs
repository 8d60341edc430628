//! The model on one imaginary accelerator: the tool's block "Full Model without Parallel".

use shardscope_estimate::{Totals, memory_totals};
use shardscope_plan::{Cluster, Degrees, Layout, Plan};

/// `plan` unsharded and with one micro-batch per step; `None` if Megatron would refuse it.
#[must_use]
pub fn uncut(plan: &Plan) -> Option<Plan> {
    let model = plan.model().clone();
    let layout = Layout::new(&Degrees::default(), model.num_layers, model.mtp_num_layers).ok()?;
    let cluster = Cluster { num_nodes: 1, gpus_per_node: 1, ..plan.cluster().clone() };
    let mut recipe = plan.recipe().clone();
    // One micro-batch, as the tool counts; any other batch would be spread over replicas that this plan does not
    // have.
    recipe.global_batch_size = recipe.micro_batch_size;
    recipe.num_micro_batches = 1;
    // Nothing is sent, so the rules of overlap would refuse the switches.
    recipe.overlap.pipeline = false;
    recipe.overlap.tensor = false;
    Plan::new(model, cluster, layout, recipe).ok()
}

/// What the unsharded model would need on one accelerator.
pub(super) fn whole_model(plan: &Plan) -> Option<Totals> {
    memory_totals(&uncut(plan)?).into_iter().next()
}
