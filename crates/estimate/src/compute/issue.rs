//! How long the host takes to issue the kernels of a pass: Python around each operator, dispatch and launch of each
//! kernel, and messages between ranks.
//!
//! None of this depends on the accelerator: the Python overhead depends on the software, its speed on the processor.
//! The best source is the golden values of Megatron-LM's functional tests: models of 12 layers, 512 wide, whose
//! arithmetic takes a few milliseconds of a step of 50 to 90 (`tests/data/measured/launch_bound.tsv`, checked by
//! `tests/suite/launch_bound.rs`). The same configurations on DGX H100, DGX A100 and GB200 give the ratios between
//! the processors.

use super::Cost;
use shardscope_plan::{Accelerator, CudaGraphs, HostIssue, Processor, Recipe};
use shardscope_units::Seconds;

/// Host time that a software spends on issuing work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Issue {
    /// A short name.
    pub name: &'static str,
    /// Time around each operator in forward, on the processors of a DGX H100: modules, hooks and autograd functions
    /// in Python.
    pub forward: Seconds,
    /// The same in backward: autograd's own thread runs Python only in autograd functions written in Python.
    pub backward: Seconds,
    /// Time per kernel: dispatcher, allocator and driver.
    pub kernel: Seconds,
    /// Time per all-reduce or exchange between ranks, which proceeds once the slowest of their hosts has issued it;
    /// each half of an all-reduce counts half.
    pub message: Seconds,
    /// Time per kernel of a recomputed layer: Python around the tensors that it saves.
    pub saved: Seconds,
    /// Source of the values.
    pub source: &'static str,
}

/// Dispatcher, autograd, allocator and driver: 5 to 25 µs from an operator's call to its launch.
const KERNEL: Seconds = Seconds::microseconds(15.0);

/// Non-reentrant `torch.utils.checkpoint`, transformers' default since release 5, calls Python hooks for each tensor
/// that a layer saves: one during forward, which notes its shape, one during recomputation, and one when backward
/// asks for it (`torch/utils/checkpoint.py:_checkpoint_hook, _recomputation_hook`). That takes 24 to 31 µs of
/// processor time per tensor, 17 to 25 µs per kernel of the forward pass (`tests/data/measured/checkpoint_hooks.tsv`:
/// Llama's and Qwen3's layers, torch 2.15 on an AMD EPYC). The reentrant kind (`use_reentrant`), the default of
/// earlier releases and of some trainers, calls none.
const CHECKPOINTED: Seconds = Seconds::microseconds(20.0);

/// Megatron core: modules, specs, and the autograd functions of Transformer Engine and Megatron, all in Python in
/// both directions.
pub const MEGATRON_CORE: Issue = Issue {
    name: "Megatron core",
    forward: Seconds::microseconds(70.0),
    backward: Seconds::microseconds(70.0),
    kernel: Seconds::microseconds(50.0),
    message: Seconds::microseconds(150.0),
    saved: Seconds::ZERO,
    source: "Megatron-LM's functional tests of 2025 and 2026 on DGX H100, steps that only the host bounds; kernels: 5 to 25 µs \
             from an operator's call to its launch (PyTorch's dispatcher, autograd, cudaLaunchKernel)",
};

/// Megatron-LM of 2020 to 2022 and its descendants: plain modules, few of their autograd functions in Python.
pub const MEGATRON_LEGACY: Issue = Issue {
    name: "Megatron-LM's first modules",
    forward: Seconds::microseconds(45.0),
    backward: Seconds::microseconds(35.0),
    kernel: KERNEL,
    message: Seconds::microseconds(750.0),
    saved: Seconds::ZERO,
    source: "operators: assumed between eager PyTorch and Megatron core; messages: three runs with small tensor-parallel layers \
             (NeMo 22.06 at TP 8, BigScience's 1.3B at TP 2)",
};

/// PyTorch's own modules, uncompiled.
pub const EAGER: Issue = Issue {
    name: "eager PyTorch",
    forward: Seconds::microseconds(40.0),
    backward: Seconds::microseconds(15.0),
    kernel: KERNEL,
    message: Seconds::microseconds(100.0),
    saved: Seconds::ZERO,
    source: "assumed: two or three small operators (views, casts) beside each that the model counts, at 5 to 25 µs each; no \
             fitted row could tell",
};

/// Plain PyTorch modules whose kernels are counted one by one.
pub const EAGER_MODULES: Issue = Issue {
    name: "modules of transformers",
    forward: Seconds::microseconds(40.0),
    backward: Seconds::ZERO,
    kernel: Seconds::microseconds(18.0),
    message: Seconds::microseconds(100.0),
    saved: CHECKPOINTED,
    source: "measured: layers 128 wide of Llama, Qwen3 and GPT-2 beside two H200 (`tests/data/measured/host.tsv`): 17 to 34 µs a kernel \
             over both passes, in virtual machines; three more of the same kind took 1.3 to 1.7 times as long (13 families), and what \
             disturbs a host only adds; what checkpoints save on a CPU (`tests/data/measured/checkpoint_hooks.tsv`); messages assumed",
};

/// Layers compiled by torch.compile: one Python call per graph, with kernels launched from generated code.
pub const COMPILED: Issue = Issue {
    name: "torch.compile",
    forward: Seconds::microseconds(5.0),
    backward: Seconds::microseconds(5.0),
    kernel: Seconds::microseconds(5.0),
    message: Seconds::microseconds(50.0),
    saved: Seconds::ZERO,
    source: "assumed: a launch of generated code costs what the driver takes; no fitted run constrains it",
};

/// CUDA graphs: a captured graph is issued at once.
pub const GRAPHED: Issue = Issue {
    name: "CUDA graphs",
    forward: Seconds::ZERO,
    backward: Seconds::ZERO,
    kernel: Seconds::ZERO,
    message: Seconds::ZERO,
    saved: Seconds::ZERO,
    source: "a graph is launched as one (NVIDIA, CUDA Graph Best Practice for PyTorch)",
};

/// All issue costs, in the guide's order.
pub const ISSUES: [Issue; 6] = [MEGATRON_CORE, MEGATRON_LEGACY, EAGER, EAGER_MODULES, COMPILED, GRAPHED];

/// How fast a node's processors run Python.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorSpeed {
    /// Which processors.
    pub processor: Processor,
    /// Time for the same Python code relative to a DGX H100's processors.
    pub share: f64,
    /// Which systems have them, and the source of the share.
    pub source: &'static str,
}

const fn speed(processor: Processor, share: f64, source: &'static str) -> ProcessorSpeed {
    ProcessorSpeed { processor, share, source }
}

/// Every host processor of the catalog's accelerators.
pub const PROCESSORS: [ProcessorSpeed; 12] = [
    speed(Processor::Skylake, 2.0, "Xeon Platinum 8168 of DGX-2; assumed, between DGX A100 and Kunpeng"),
    speed(
        Processor::CascadeLake,
        2.0,
        "Xeon Gold 6248 of Jean Zay's V100 nodes; assumed, between DGX A100 and Kunpeng",
    ),
    speed(
        Processor::Rome,
        1.45,
        "EPYC 7742 of DGX A100: median of 34 configurations of Megatron-LM's functional tests",
    ),
    speed(Processor::Milan, 1.45, "EPYC 7R13 of AWS G6 and G6e, 7A53 of Frontier; assumed as DGX A100"),
    speed(Processor::SapphireRapids, 1.0, "Xeon Platinum 8480C of DGX H100 and H200: what the shares are of"),
    speed(Processor::EmeraldRapids, 1.0, "Xeon Platinum 8570 of DGX B200; assumed as DGX H100"),
    speed(Processor::GraniteRapids, 1.0, "Xeon 6776P of DGX B300; assumed as DGX H100"),
    speed(Processor::Genoa, 1.0, "EPYC of 2022; assumed as DGX H100"),
    speed(Processor::Turin, 1.0, "EPYC of 2024; assumed as DGX H100"),
    speed(
        Processor::Grace,
        1.2,
        "Grace of GB200 and GB300: median of 34 configurations of Megatron-LM's functional tests on GB200",
    ),
    speed(Processor::Kunpeng920, 2.0, "Kunpeng 920 of Atlas 800 and 900; assumed"),
    speed(
        Processor::Desktop,
        1.0,
        "Workstations of 2022 and newer, which clock higher than servers; assumed as DGX H100",
    ),
];

impl Issue {
    /// How `recipe` issues its kernels on a typical node of `accelerator`.
    #[must_use]
    pub fn new(recipe: &Recipe, accelerator: &Accelerator) -> Self {
        let graphed = recipe.cuda_graphs == CudaGraphs::Iteration;
        let usual = recipe.software.semantics().issue;
        let host = if recipe.fusions.compiled_layers { HostIssue::Compiled } else { usual };
        let issue = if graphed { GRAPHED } else { Self::of_host(host) };
        let found = PROCESSORS.iter().find(|one| one.processor == accelerator.processor);
        let share = found.map_or(1.0, |one| one.share);
        // Whatever streams inputs to the host is its own checkpoint implementation, without these hooks.
        let offload = &recipe.offload;
        let unhooked =
            recipe.transformers.reentrant_checkpoints || offload.layer_inputs || offload.every_input;
        Self {
            forward: issue.forward * share,
            backward: issue.backward * share,
            kernel: issue.kernel * share,
            message: issue.message * share,
            saved: if unhooked { Seconds::ZERO } else { issue.saved * share },
            ..issue
        }
    }

    const fn of_host(issue: HostIssue) -> Self {
        match issue {
            HostIssue::MegatronCore => MEGATRON_CORE,
            HostIssue::MegatronLegacy => MEGATRON_LEGACY,
            HostIssue::Eager => EAGER,
            HostIssue::Modules => EAGER_MODULES,
            HostIssue::Compiled => COMPILED,
        }
    }

    /// Host time of arithmetic and messages that the forward code issues, in a forward pass or its recomputation.
    #[must_use]
    pub fn ahead(&self, cost: &Cost) -> Seconds {
        self.forward * cost.operators + self.kernel * cost.launches + self.message * cost.messages
    }

    /// Hooks around the tensors that a recomputed `forward` saves, expressed as additional launches.
    #[must_use]
    pub fn hooks(&self, forward: &Cost) -> f64 {
        if self.kernel > Seconds::ZERO {
            forward.launches * self.saved.get() / self.kernel.get()
        } else {
            0.0
        }
    }

    /// Host time of arithmetic and messages that the backward pass issues.
    #[must_use]
    pub fn behind(&self, cost: &Cost) -> Seconds {
        self.backward * cost.operators + self.kernel * cost.launches + self.message * cost.messages
    }
}
