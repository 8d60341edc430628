//! What a launch script can request of a software, and so what a search may propose for it.

use crate::layout::PipelineSchedule;
use crate::moe::Dispatcher;
use crate::optimizer::DpSharding;
use crate::precision::Fp8Recipe;

/// Choices that a software offers apart from sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// What data-parallel replicas may shard; only the plan's own sharding if empty.
    pub shardings: &'static [DpSharding],
    /// The same for several pipeline stages.
    pub shardings_of_pipelines: &'static [DpSharding],
    /// Whether optimizer states are always sharded in bf16, so that replicas cannot each hold all of them
    /// (DeepSpeed's `runtime/bf16_optimizer.py`).
    pub shares_states_in_bf16: bool,
    /// Whether gradient reductions and weight gathers overlap with compute on request (`--overlap-grad-reduce`,
    /// `--overlap-param-gather`).
    pub overlaps_reductions: bool,
    /// Whether first and last stage may have other sizes, or all be listed explicitly.
    pub uneven_stages: bool,
    /// Whether ranks can be numbered with data parallelism outside the pipeline (`--use-tp-pp-dp-mapping`).
    pub orders_ranks: bool,
    /// Schedules to choose from; only the plan's own if empty.
    pub schedules: &'static [PipelineSchedule],
    /// Whether there is a fork of it with zero-bubble schedules, on which a plan with such a schedule runs.
    pub has_zero_bubble_fork: bool,
    /// Modules of a layer that may be recomputed individually.
    pub recomputed_modules: RecomputedModules,
    /// Whether some of a chunk's layers can be recomputed whole (`--recompute-method block`).
    pub recomputes_blocks: bool,
    /// Whether all layers can be recomputed whole.
    pub recomputes_layers: bool,
    /// Whether a setting chooses fused attention instead of an unfused one (`--attention-backend`).
    pub chooses_attention: bool,
    /// How 8-bit and 4-bit products may be scaled; [`Fp8Recipe::runs_on`] says which an accelerator supports.
    pub fp8_recipes: &'static [Fp8Recipe],
    /// How tokens may be sent to their experts, the simplest first.
    pub dispatchers: &'static [Dispatcher],
    /// How keeping optimizer states on the host is requested.
    pub host_optimizer: HostOptimizer,
    /// Whether replicas may shard within several groups, each of which holds a full copy
    /// (`--num-distributed-optimizer-instances`; with Megatron's FSDP that is HSDP; torchtitan's
    /// `data_parallel_replicate_degree`).
    pub groups_replicas: bool,
    /// Whether modules' saved tensors may be offloaded to the host (`--fine-grained-activation-offloading`).
    pub offloads_modules: bool,
}

/// How keeping optimizer states on the host is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOptimizer {
    /// Not at all.
    Absent,
    /// A fraction of them (`--optimizer-cpu-offload`), with the precision-aware optimizer and sharded states
    /// (`megatron/training/arguments.py:validate_args`).
    Fraction,
    /// All of them (`zero_optimization.offload_optimizer`), from ZeRO stage 1 on.
    All,
}

/// Modules of a layer that may be recomputed individually.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputedModules {
    /// None.
    Absent,
    /// Core attention if its scores are saved (`--recompute-activations` of 2023).
    Scores,
    /// A list by name (`--recompute-modules`).
    Named,
}
