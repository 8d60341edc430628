//! The figures that a tool reports for a run.

use serde::{Deserialize, Serialize};

/// Which tool printed the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// What there is to know about figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remark {
    /// Metrics of a whole run.
    Mean,
    /// tqdm's rates.
    Smoothed,
    /// Steps timed by a profiler.
    Profiled,
    /// A snapshot without a history.
    Moment,
    /// A snapshot with one.
    History,
    /// Sizes as a table prints them.
    Rounded,
    /// A device's memory.
    AllProcesses,
}

impl Remark {
    /// The remark in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Mean => "the mean of all steps, including warm-up, evaluations and checkpoints",
            Self::Smoothed => "the median of the rates that tqdm printed, which it smooths",
            Self::Profiled => "with the profiler on, which slows steps down",
            Self::Moment => "at the moment of the snapshot: what was before it was not recorded",
            Self::History => {
                "allocated: at least this, as a trace has the sizes asked for; peaks before the trace began are not in it"
            }
            Self::Rounded => "rounded down to the unit that was printed",
            Self::AllProcesses => "of all processes on the device",
        }
    }
}

/// The time of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Time of one step. Unit: second.
    pub seconds: f64,
    /// Number of steps over which this time was taken.
    pub count: u64,
}

/// The figures of one tool; at least one is present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// What there is to know about these figures.
    pub remark: Option<Remark>,
}

// No figure is NaN: each is parsed as a finite number or computed from positive ones.
impl Eq for Measured {}

impl Measured {
    pub(crate) const fn by(tool: Tool) -> Self {
        Self {
            tool,
            step: None,
            tflops_per_gpu: None,
            allocated: None,
            reserved: None,
            device: None,
            remark: None,
        }
    }

    /// Whether the figures can be compared with an estimate. Those that were stored may have been changed since.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let positive = |number: f64| number > 0.0 && number.is_finite();
        self.says_something()
            && self.step.is_none_or(|step| positive(step.seconds))
            && self.tflops_per_gpu.is_none_or(positive)
    }

    pub(crate) const fn says_something(&self) -> bool {
        self.step.is_some()
            || self.tflops_per_gpu.is_some()
            || self.allocated.is_some()
            || self.reserved.is_some()
            || self.device.is_some()
    }
}
