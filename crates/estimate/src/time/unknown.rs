//! Named uncertainties of the estimate.

use super::interval::WAITING;
use super::whole::Time;
use crate::compute::{Share, Standing, assumed};
use shardscope_plan::{Fp8Recipe, Plan, Recompute};
use shardscope_schedule::{Rehearsal, Shape};

/// A reason why the true step may differ from the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// No published run shows how fast the accelerator is.
    Accelerator,
    /// Only runs on related accelerators do.
    Relative,
    /// No published run on the accelerator, or on another with its silicon, determines this constant.
    Assumed(Share),
    /// Products in nvfp4 are known from few runs.
    Fp4,
    /// How evenly the router spreads tokens over experts.
    ExpertBalance,
    /// Other traffic on the network, its routing and stragglers, over many nodes.
    Network,
    /// Host speed, if the device waits for the host.
    Host,
    /// How well the gathering of sharded weights is prefetched.
    Prefetch,
    /// How fast saved tensors are copied to the host and back.
    HostCopies,
    /// How fast layer inputs are copied to host memory that is not pinned, and back.
    PageableCopies,
    /// How fast offloaded modules' tensors are copied to the host, and whether the copies hide behind arithmetic.
    ModuleCopies,
    /// How long it takes to project gradients to a lower rank.
    Projections,
    /// Which kernels named modules recompute.
    Modules,
    /// Which replicas sum the gradients of `DualPipe`'s two copies.
    Copies,
    /// How micro-batches beyond the simulated ones proceed.
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
                "Not calibrated: no published run shows how fast this accelerator is, so the share of its data-sheet peak is taken \
                 from a different kind. The step time is within a factor of 2. Enter a measured matrix product and all-reduce."
            }
            Self::Relative => {
                "Not calibrated: there is no published run on this accelerator, so the share of its data-sheet peak is taken from \
                 related ones. The step time is within a factor of 1.35. Enter a measured matrix product and all-reduce."
            }
            Self::Assumed(share) => assumed_sentence(share),
            Self::Fp4 => "nvfp4 GEMMs are calibrated on five published runs, all on GB300.",
            Self::ExpertBalance => {
                "Experts are assumed to receive equal numbers of tokens; the busiest one sets the pace."
            }
            Self::Network => "Routing, other jobs and stragglers on the network are not modelled.",
            Self::Host => {
                "The GPU waits for the host: the step depends on the host's speed and on the framework's Python overhead, which CUDA graphs remove."
            }
            Self::Prefetch => "Sharded weights are assumed to be gathered one unit ahead.",
            Self::HostCopies => {
                "Saved tensors are copied to the host and back at PCIe 4's 31 GB/s each way; where the link is faster the step is shorter."
            }
            Self::PageableCopies => {
                "Inputs of layers are copied to the host and back at PCIe 4's 31 GB/s each way; into memory that is not pinned, as here, copies may take several times as long."
            }
            Self::ModuleCopies => {
                "Offloaded modules' copies are assumed to overlap with compute as far as it lasts, at the rate of one accelerator's link with no contention for host memory."
            }
            Self::Projections => {
                "What projecting gradients takes is left out: two products with each gradient, and new singular vectors every update_proj_gap steps, which take far longer than the step."
            }
            Self::Modules => "Selective recomputation is costed by the kernels of the named modules.",
            Self::Copies => {
                "DualPipe's two copies of the model reduce gradients over the replicas of each; what they exchange with each other is not counted."
            }
            Self::Continued => {
                "The step has more events than are simulated one by one; the rest is extrapolated at the same pace, within 1% of the full simulation."
            }
            Self::Between => "Data loading, evaluation and checkpoints are left out.",
        }
    }
}

/// What is assumed, and which value is used instead.
const fn assumed_sentence(share: Share) -> &'static str {
    match share {
        Share::Half | Share::Fp8 | Share::Fp4 => {
            "Assumed: the rate of GEMMs in this format; no published run on this accelerator measures it."
        }
        Share::Eager => {
            "Assumed: plain PyTorch linear layers run at the same rate as Transformer Engine's; no published run on this accelerator measures it."
        }
        Share::Wave => {
            "Assumed: the fixed cost of a wave of GEMM tiles; no published run on this accelerator measures it."
        }
        Share::Grouped => {
            "Assumed: the rate of grouped GEMMs of experts; no published run on this accelerator measures it."
        }
        Share::Memory => {
            "Assumed: the rate of memory-bound kernels; no published run on this accelerator measures it."
        }
        Share::AttentionForward | Share::AttentionBackward | Share::AttentionFourth | Share::TailRows => {
            "Assumed: the rate of fused attention; no published run on this accelerator measures it."
        }
        Share::AttentionTriton => {
            "Assumed: the rate of FlashAttention in Triton; no published run on this accelerator measures it."
        }
        Share::AttentionPytorch => {
            "Assumed: the rate of attention through PyTorch; no published run on this accelerator measures it."
        }
        Share::FastLink | Share::FastStart => {
            "Assumed: the bus bandwidth of collectives within a node; no published run on this accelerator measures it. Enter a measured all-reduce."
        }
        Share::Exchange => {
            "Assumed: the bandwidth of all-to-alls within a node; no published run on this accelerator measures it."
        }
        Share::Network | Share::NetworkStart | Share::NetworkHop => {
            "Assumed: the bus bandwidth over the network; no published run on this accelerator measures it. Enter a measured all-reduce."
        }
        Share::UserBuffers => {
            "Assumed: what tensor-parallel overlap hides; no published run on this accelerator measures it."
        }
        Share::Contention => {
            "Assumed: what overlapped communication takes from the compute beside it; no published run on this accelerator measures it."
        }
        Share::Straggling => {
            "Assumed: the time lost to stragglers on many nodes; no published run on this accelerator measures it."
        }
        Share::Unaligned | Share::Launch | Share::Iteration => {
            "Assumed: fixed costs of kernels and steps; no published run measures them."
        }
    }
}

/// Number of nodes from which the network's behaviour matters beyond its bandwidth.
const MANY_NODES: u64 = 128;

/// What cannot be known about `plan`'s time.
#[must_use]
pub fn unknowns(plan: &Plan, time: &Time) -> Vec<Unknown> {
    let recipe = plan.recipe();
    let mut out = Vec::new();
    let mut when = |holds: bool, unknown| {
        if holds {
            out.push(unknown);
        }
    };
    let standing = Standing::from_accelerator(&plan.cluster().accelerator);
    when(standing == Standing::Stranger, Unknown::Accelerator);
    when(standing == Standing::Related, Unknown::Relative);
    // For a part without runs of its own, the sentences above already cover every constant.
    let has_runs = standing == Standing::Measured;
    for share in assumed(plan.cluster().accelerator.generation).iter().filter(|_| has_runs) {
        when(share.counts_in(plan), Unknown::Assumed(*share));
    }
    let fp4 = recipe.fp8.as_ref().is_some_and(|fp8| fp8.recipe == Fp8Recipe::Nvfp4);
    when(fp4, Unknown::Fp4);
    when(plan.model().experts.is_some(), Unknown::ExpertBalance);
    when(plan.layout().copies() > 1, Unknown::Copies);
    when(plan.cluster().num_nodes >= MANY_NODES, Unknown::Network);
    when(time.waits("host").1 >= WAITING, Unknown::Host);
    when(plan.gathers_units(), Unknown::Prefetch);
    when(recipe.offload.saved_tensors, Unknown::HostCopies);
    when(recipe.offload.every_input, Unknown::PageableCopies);
    when(!recipe.offload.modules.is_empty(), Unknown::ModuleCopies);
    when(recipe.optimizer.low_rank.is_some(), Unknown::Projections);
    when(matches!(recipe.recompute, Recompute::Selective(_)), Unknown::Modules);
    if !Rehearsal::new(Shape::from_plan(plan)).is_exact() {
        out.push(Unknown::Continued);
    }
    out.push(Unknown::Between);
    out
}
