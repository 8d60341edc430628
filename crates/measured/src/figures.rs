//! The figures that a tool reports for a run.

/// Stands for a figure that was not measured.
const ABSENT: &str = "-";

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
    const ALL: [Self; 6] = [
        Self::MegatronLog,
        Self::TrainerLog,
        Self::MemorySnapshot,
        Self::MemorySummary,
        Self::Profiler,
        Self::NvidiaSmi,
    ];

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    const ALL: [Self; 7] = [
        Self::Mean,
        Self::Smoothed,
        Self::Profiled,
        Self::Moment,
        Self::History,
        Self::Rounded,
        Self::AllProcesses,
    ];

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

    /// The figures as words of a line, for [`Self::parse`]: a form that takes less of a program than JSON of every field.
    #[must_use]
    pub fn written(&self) -> String {
        fn word(number: Option<impl ToString>) -> String {
            number.map_or_else(|| ABSENT.to_owned(), |number| number.to_string())
        }
        let place = Tool::ALL.iter().position(|tool| *tool == self.tool);
        let remark = Remark::ALL.iter().position(|remark| Some(*remark) == self.remark);
        [
            word(place),
            word(self.step.map(|step| step.seconds)),
            word(self.step.map(|step| step.count)),
            word(self.tflops_per_gpu),
            word(self.allocated),
            word(self.reserved),
            word(self.device),
            word(remark),
        ]
        .join(" ")
    }

    /// Reads what [`Self::written`] wrote; `None` if it is anything else, or no figures that can be compared with an estimate:
    /// a browser's store is untrusted.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [tool, seconds, count, rate, allocated, reserved, device, remark] = words.as_slice() else {
            return None;
        };
        let whole = |word: &str| word.parse::<u64>().ok();
        let positive =
            |word: &str| word.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
        let place = |word: &str| word.parse::<usize>().ok();
        let found = Self {
            step: positive(seconds).zip(whole(count)).map(|(seconds, count)| Step { seconds, count }),
            tflops_per_gpu: positive(rate),
            allocated: whole(allocated),
            reserved: whole(reserved),
            device: whole(device),
            remark: place(remark).and_then(|place| Remark::ALL.get(place)).copied(),
            ..Self::by(*Tool::ALL.get(place(tool)?)?)
        };
        found.says_something().then_some(found)
    }

    pub(crate) const fn says_something(&self) -> bool {
        self.step.is_some()
            || self.tflops_per_gpu.is_some()
            || self.allocated.is_some()
            || self.reserved.is_some()
            || self.device.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_back_as_they_were() {
        let all = Measured {
            step: Some(Step { seconds: 0.1 + 0.2, count: 24 }),
            tflops_per_gpu: Some(416.7),
            allocated: Some(u64::MAX),
            reserved: Some(1),
            device: None,
            remark: Some(Remark::AllProcesses),
            ..Measured::by(Tool::NvidiaSmi)
        };
        assert_eq!(Measured::parse(&all.written()), Some(all.clone()));
        for (place, tool) in Tool::ALL.into_iter().enumerate() {
            let remark = Remark::ALL.get(place).copied();
            let one = Measured { device: Some(7), remark, ..Measured::by(tool) };
            assert_eq!(Measured::parse(&one.written()), Some(one));
        }
        let without = Measured { device: Some(7), ..Measured::by(Tool::Profiler) };
        assert_eq!(Measured::parse(&without.written()), Some(without));
        for broken in
            ["", "0", "0 0.0 1 - - - - -", "0 inf 1 - - - - -", "9 1.0 1 - - - - -", "0 - - - - - - - -"]
        {
            assert_eq!(Measured::parse(broken), None, "{broken}");
        }
    }
}
