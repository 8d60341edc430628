//! What the estimate cannot know, by name.

use crate::compute::is_calibrated;
use shardscope_plan::{DpSharding, Plan, Recompute};
use shardscope_schedule::{Rehearsal, Shape};

/// A reason why the true step may differ from the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The accelerator's generation has no calibration set.
    Accelerator,
    /// How evenly the router spreads tokens over experts.
    ExpertBalance,
    /// Other traffic on the network, its routing and stragglers, over many nodes.
    Network,
    /// Host speed, where steps are short.
    Host,
    /// How well gathering of sharded weights is prefetched.
    Prefetch,
    /// Which kernels are recomputed by named modules.
    Modules,
    /// Which replicas add up the gradients of `DualPipe`'s two copies.
    Copies,
    /// How micro-batches beyond those run one by one go on.
    Continued,
    /// Data loading, logging and checkpoints between steps.
    Between,
}

impl Unknown {
    /// In one sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Accelerator => {
                "This accelerator's real speed was not calibrated: shares of its data sheet are taken from \
                 another generation. Enter a measured matrix product and all-reduce."
            }
            Self::ExpertBalance => {
                "Experts are assumed to get equal numbers of tokens; the busiest one sets the pace."
            }
            Self::Network => "Routing, other jobs and stragglers on the network are not modelled.",
            Self::Host => "Steps this short depend on the host's speed; CUDA graphs remove that.",
            Self::Prefetch => "Sharded weights are assumed to be gathered one unit ahead.",
            Self::Modules => "Selective recomputation is costed by the kernels of the named modules.",
            Self::Copies => {
                "The two copies of DualPipe add up their gradients over the replicas of each; what they exchange with each other is not counted."
            }
            Self::Continued => {
                "The step has more events than are run one by one: it is continued at the pace of those that are, within 1 % of the whole run."
            }
            Self::Between => "Data loading, evaluation and checkpoints are left out.",
        }
    }
}

/// Nodes from which on the network's behaviour matters beyond its bandwidth.
const MANY_NODES: u64 = 128;

/// What cannot be known about `plan`'s time.
#[must_use]
pub fn unknowns(plan: &Plan) -> Vec<Unknown> {
    let recipe = plan.recipe();
    let mut out = Vec::new();
    let mut when = |holds: bool, unknown| {
        if holds {
            out.push(unknown);
        }
    };
    when(!is_calibrated(&plan.cluster().accelerator), Unknown::Accelerator);
    when(plan.model().experts.is_some(), Unknown::ExpertBalance);
    when(plan.layout().copies() > 1, Unknown::Copies);
    when(plan.cluster().num_nodes >= MANY_NODES, Unknown::Network);
    when(!recipe.cuda_graphs && recipe.num_micro_batches <= 2, Unknown::Host);
    when(recipe.dp_sharding == DpSharding::Parameters, Unknown::Prefetch);
    when(matches!(recipe.recompute, Recompute::Selective(_)), Unknown::Modules);
    if !Rehearsal::of(Shape::of(plan)).is_exact() {
        out.push(Unknown::Continued);
    }
    out.push(Unknown::Between);
    out
}
