//! What a launch script can ask of a software: what a search may propose for it.

use crate::layout::PipelineSchedule;
use crate::moe::Dispatcher;
use crate::optimizer::DpSharding;
use crate::precision::Fp8Recipe;

/// Choices beside sizes that a software has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// What data-parallel replicas may share; the plan's own alone where there is none.
    pub shardings: &'static [DpSharding],
    /// The same with several pipeline stages.
    pub shardings_of_pipelines: &'static [DpSharding],
    /// Whether optimizer states are shared in bf16 whatever is asked for, so that there replicas cannot hold all (DeepSpeed's
    /// `runtime/bf16_optimizer.py`).
    pub shares_states_in_bf16: bool,
    /// Whether reductions of gradients and gathers of weights hide behind compute where they are asked to
    /// (`--overlap-grad-reduce`, `--overlap-param-gather`).
    pub overlaps_reductions: bool,
    /// Whether first and last stage may have other sizes, or all be written out.
    pub uneven_stages: bool,
    /// Whether ranks can be numbered with data parallelism behind the pipeline (`--use-tp-pp-dp-mapping`).
    pub orders_ranks: bool,
    /// Schedules that it chooses among; the plan's own alone where there is none.
    pub schedules: &'static [PipelineSchedule],
    /// Whether there is a fork of it with zero-bubble schedules, which a plan with one of them runs on.
    pub has_zero_bubble_fork: bool,
    /// Modules of a layer that may be recomputed alone.
    pub recomputed_modules: RecomputedModules,
    /// Whether some of a chunk's layers can be recomputed whole (`--recompute-method block`).
    pub recomputes_blocks: bool,
    /// Whether all layers can be recomputed whole.
    pub recomputes_layers: bool,
    /// Whether a setting chooses fused attention in the place of an unfused one (`--attention-backend`).
    pub chooses_attention: bool,
    /// How products of 8 and 4 bits may be scaled; those that the accelerator has are [`Fp8Recipe::runs_on`]'s.
    pub fp8_recipes: &'static [Fp8Recipe],
    /// How tokens may be sent to their experts, the plainest first.
    pub dispatchers: &'static [Dispatcher],
    /// How optimizer states are asked to stay on the host.
    pub host_optimizer: HostOptimizer,
    /// Whether replicas may share in several groups, each of which has everything
    /// (`--num-distributed-optimizer-instances`; with Megatron's FSDP that is HSDP; torchtitan's
    /// `data_parallel_replicate_degree`).
    pub groups_replicas: bool,
    /// Whether what modules of a layer save may wait on the host (`--fine-grained-activation-offloading`).
    pub offloads_modules: bool,
}

/// How optimizer states are asked to stay on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOptimizer {
    /// Not at all.
    Absent,
    /// A fraction of them (`--optimizer-cpu-offload`), under the precision-aware optimizer and sharded
    /// (`megatron/training/arguments.py:validate_args`).
    Fraction,
    /// All of them (`zero_optimization.offload_optimizer`), from ZeRO's stage 1 on.
    All,
}

/// Modules of a layer that may be recomputed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputedModules {
    /// None.
    Absent,
    /// Core attention where its scores are kept (`--recompute-activations` of 2023).
    Scores,
    /// A list by name (`--recompute-modules`).
    Named,
}
