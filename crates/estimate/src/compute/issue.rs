//! How long the host takes to issue the kernels of a pass: what the software runs around each operator, what each kernel of it
//! costs to dispatch and launch, and what a message between ranks takes.
//!
//! None of it is a matter of the accelerator: the share of Python is the software's, the speed the processor's. Golden values
//! of Megatron-LM's functional tests tell it best: models of 12 layers, 512 wide, whose arithmetic takes a few milliseconds
//! of a step of 50 to 90 (`tests/data/measured/launch_bound.tsv`, held by `tests/suite/launch_bound.rs`). The same
//! configurations on DGX H100, DGX A100 and GB200 give the ratios of the processors.

use super::Cost;
use shardscope_plan::{Accelerator, CudaGraphs, HostIssue, Processor, Recipe};
use shardscope_units::Seconds;

/// What a software spends on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Issue {
    /// In a few words.
    pub name: &'static str,
    /// Around each operator, forward, on the processors of a DGX H100: modules, hooks and autograd functions in Python.
    pub forward: Seconds,
    /// The same backward: autograd's own thread runs no Python but in functions that are written in it.
    pub backward: Seconds,
    /// Of one kernel: dispatcher, allocator and driver.
    pub kernel: Seconds,
    /// Of one all-reduce or exchange between ranks, which goes on when the slowest of their hosts has issued it; half of it for
    /// each half of an all-reduce.
    pub message: Seconds,
    /// Of a kernel of a layer that is computed again: Python around what it saves.
    pub saved: Seconds,
    /// Where that is from.
    pub source: &'static str,
}

/// Dispatcher, autograd, allocator and driver: 5 to 25 µs from an operator's call to its launch.
const KERNEL: Seconds = Seconds::microseconds(15.0);

/// `torch.utils.checkpoint` without reentrance, transformers' own since release 5, calls hooks in Python for each tensor that a layer
/// saves: one while forward runs, which notes its shape, one while it is computed again, one when backward asks for it
/// (`torch/utils/checkpoint.py:_checkpoint_hook, _recomputation_hook`). 24 to 31 µs of a processor's time a tensor, 17 to 25 µs for each
/// kernel of the forward pass (`tests/data/measured/checkpoint_hooks.tsv`: Llama's and Qwen3's layers, torch 2.15 on an AMD EPYC). The
/// reentrant kind (`use_reentrant`), the default of releases before and of some trainers, calls none.
const CHECKPOINTED: Seconds = Seconds::microseconds(20.0);

/// Megatron core: modules, specs, Transformer Engine's and Megatron's own autograd functions, all in Python both ways.
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

/// Megatron-LM of 2020 to 2022 and what grew out of it: plain modules, few of their autograd functions in Python.
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

/// Modules of plain PyTorch whose kernels are counted one by one.
pub const EAGER_MODULES: Issue = Issue {
    name: "modules of transformers",
    forward: Seconds::microseconds(40.0),
    backward: Seconds::ZERO,
    kernel: Seconds::microseconds(18.0),
    message: Seconds::microseconds(100.0),
    saved: CHECKPOINTED,
    source: "measured: layers 128 wide of Llama, Qwen3 and GPT-2 beside an H200 (`tests/data/measured/host.tsv`): 17 to 34 µs a kernel \
             over both passes, in a virtual machine; what checkpoints save on a CPU (`tests/data/measured/checkpoint_hooks.tsv`); \
             messages assumed",
};

/// Layers compiled by torch.compile: one call from Python a graph, the kernels launched from generated code.
pub const COMPILED: Issue = Issue {
    name: "torch.compile",
    forward: Seconds::microseconds(5.0),
    backward: Seconds::microseconds(5.0),
    kernel: Seconds::microseconds(5.0),
    message: Seconds::microseconds(50.0),
    saved: Seconds::ZERO,
    source: "assumed: a launch of generated code takes what the driver does; no fitted row could tell",
};

/// Captured graphs are issued at once.
pub const GRAPHED: Issue = Issue {
    name: "CUDA graphs",
    forward: Seconds::ZERO,
    backward: Seconds::ZERO,
    kernel: Seconds::ZERO,
    message: Seconds::ZERO,
    saved: Seconds::ZERO,
    source: "a graph is launched as one (NVIDIA, CUDA Graph Best Practice for PyTorch)",
};

/// Every way of issuing, as the guide lists them.
pub const ISSUES: [Issue; 6] = [MEGATRON_CORE, MEGATRON_LEGACY, EAGER, EAGER_MODULES, COMPILED, GRAPHED];

/// How fast a node's processors run Python.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorSpeed {
    /// Which processors.
    pub processor: Processor,
    /// Time for the same Python, as a share of what a DGX H100's processors take.
    pub share: f64,
    /// Which systems have them, and where the share is from.
    pub source: &'static str,
}

const fn speed(processor: Processor, share: f64, source: &'static str) -> ProcessorSpeed {
    ProcessorSpeed { processor, share, source }
}

/// Every processor that the catalog's accelerators stand beside.
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
    /// How `recipe` issues its kernels on the usual node of `accelerator`.
    #[must_use]
    pub fn new(recipe: &Recipe, accelerator: &Accelerator) -> Self {
        let whole = recipe.cuda_graphs == CudaGraphs::Iteration;
        let usual = recipe.software.semantics().issue;
        let host = if recipe.fusions.compiled_layers { HostIssue::Compiled } else { usual };
        let issue = if whole { GRAPHED } else { Self::of_host(host) };
        let found = PROCESSORS.iter().find(|one| one.processor == accelerator.processor);
        let share = found.map_or(1.0, |one| one.share);
        // What streams inputs to the host is a checkpoint of its own.
        let unhooked = recipe.transformers.reentrant_checkpoints || recipe.offload.layer_inputs;
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

    /// Host time of arithmetic and messages that are issued by the forward code: a forward pass, or one done again.
    #[must_use]
    pub fn ahead(&self, cost: &Cost) -> Seconds {
        self.forward * cost.operators + self.kernel * cost.launches + self.message * cost.messages
    }

    /// What stands around what `forward` saves where it is computed again, as so many further launches.
    #[must_use]
    pub fn hooks(&self, forward: &Cost) -> f64 {
        if self.kernel > Seconds::ZERO {
            forward.launches * self.saved.get() / self.kernel.get()
        } else {
            0.0
        }
    }

    /// Host time of those that the backward pass issues.
    #[must_use]
    pub fn behind(&self, cost: &Cost) -> Seconds {
        self.backward * cost.operators + self.kernel * cost.launches + self.message * cost.messages
    }
}
