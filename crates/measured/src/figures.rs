//! The figures that a tool reports for a run.

/// Which tool printed the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Iteration lines of Megatron-LM and its forks.
    MegatronLog,
    /// Progress, metrics and state of Hugging Face's Trainer.
    TrainerLog,
    /// `torch.cuda.memory._dump_snapshot`, or the result of `_snapshot` as JSON.
    MemorySnapshot,
    /// `torch.cuda.memory_summary` or `memory_stats`.
    MemorySummary,
    /// `torch.profiler`: its table or its trace.
    Profiler,
    /// nvidia-smi: its table, CSV or details.
    NvidiaSmi,
}

impl Tool {
    /// The tool's name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MegatronLog => "Megatron log",
            Self::TrainerLog => "Trainer log",
            Self::MemorySnapshot => "PyTorch memory snapshot",
            Self::MemorySummary => "PyTorch memory statistics",
            Self::Profiler => "PyTorch profiler",
            Self::NvidiaSmi => "nvidia-smi",
        }
    }
}

/// The time of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Time of one step. Unit: second.
    pub seconds: f64,
    /// Number of steps over which this time was taken.
    pub count: u64,
}

/// The figures of one tool; at least one is present.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The tool that reported them.
    pub tool: Tool,
    /// The time of a step: the median if steps were timed one by one, otherwise the mean.
    pub step: Option<Step>,
    /// As the framework's log counts it. Unit: TFLOP/s per GPU.
    pub tflops_per_gpu: Option<f64>,
    /// Peak memory that torch had allocated on a device. Unit: byte.
    pub allocated: Option<u64>,
    /// Peak memory that torch had reserved on a device. Unit: byte.
    pub reserved: Option<u64>,
    /// Peak memory in use on a device, by any process. Unit: byte.
    pub device: Option<u64>,
    /// Remarks on these figures; empty if there are none.
    pub remark: &'static str,
}

impl Measured {
    pub(crate) const fn by(tool: Tool) -> Self {
        Self {
            tool,
            step: None,
            tflops_per_gpu: None,
            allocated: None,
            reserved: None,
            device: None,
            remark: "",
        }
    }

    pub(crate) const fn says_something(&self) -> bool {
        self.step.is_some()
            || self.tflops_per_gpu.is_some()
            || self.allocated.is_some()
            || self.reserved.is_some()
            || self.device.is_some()
    }
}
