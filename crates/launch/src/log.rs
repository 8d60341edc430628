//! Iteration lines that a training prints (time, throughput and memory), for comparison with the estimate: those of
//! Megatron-LM (`training.py`), its forks, and Megatron-DeepSpeed.

/// Maximum number of samples kept.
const MOST: usize = 100_000;
/// Bytes of a MiB, the unit of the memory report's "MB" (`training/utils.py`, report_memory).
const MIB: f64 = 1_048_576.0;

/// One iteration as reported in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Iteration {
    /// Its number, from 1.
    pub number: Option<u64>,
    /// Sequences of the step.
    pub global_batch_size: Option<u64>,
    /// Seconds of the step.
    pub seconds: Option<f64>,
    /// Model FLOPs per second and accelerator, in units of 10^12, by the log's own formula.
    pub tflops_per_gpu: Option<f64>,
}

/// The memory of one rank as reported in the log, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// The rank that printed it.
    pub rank: Option<u64>,
    /// `torch.cuda.memory_allocated`.
    pub allocated: Option<u64>,
    /// `torch.cuda.max_memory_allocated`.
    pub max_allocated: Option<u64>,
    /// `torch.cuda.memory_reserved`.
    pub reserved: Option<u64>,
    /// `torch.cuda.max_memory_reserved`.
    pub max_reserved: Option<u64>,
}

/// The contents of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Its iterations, in the order printed.
    pub iterations: Vec<Iteration>,
    /// Its memory reports, in the order printed.
    pub memory: Vec<Memory>,
}

impl Log {
    /// The median time of a step, without the first, which includes warm-up; seconds.
    #[must_use]
    pub fn median_seconds(&self) -> Option<f64> {
        let steady = self.steady(|iteration| iteration.seconds);
        steady.get(steady.len() / 2).copied()
    }

    /// The median rate of the same steps, in units of 10^12 FLOPs per second and accelerator. If every iteration of a
    /// log has both, it belongs to the step whose time is the median, since the longer of two times is the lower of two
    /// rates.
    #[must_use]
    pub fn median_tflops_per_gpu(&self) -> Option<f64> {
        let steady = self.steady(|iteration| iteration.tflops_per_gpu);
        steady.get(steady.len().saturating_sub(1) / 2).copied()
    }

    /// The values of all steps but the first, sorted.
    fn steady(&self, of: impl Fn(&Iteration) -> Option<f64>) -> Vec<f64> {
        let mut steady: Vec<f64> = self.iterations.iter().filter_map(of).collect();
        if steady.len() > 1 {
            steady.remove(0);
        }
        steady.sort_by(f64::total_cmp);
        steady
    }

    /// The largest peak of allocated bytes over all ranks that report one.
    #[must_use]
    pub fn max_allocated(&self) -> Option<u64> {
        self.memory.iter().filter_map(|memory| memory.max_allocated).max()
    }
}

/// Whether a text is such a log.
#[must_use]
pub fn is_log(text: &str) -> bool {
    let marks = ["elapsed time per iteration", "| max allocated:", "| allocated:"];
    let found = marks.iter().find_map(|mark| text.find(mark));
    found.is_some_and(|at| !text.get(..at).unwrap_or("").contains("--num-layers "))
}

/// The tool whose output a text begins with, other than Megatron-LM, if it starts nothing: what stands before that output
/// has no option of a command.
#[must_use]
pub fn printed_by(text: &str) -> Option<&'static str> {
    // tqdm writes over its line with a carriage return.
    for line in text.split(['\n', '\r']) {
        if let Some(tool) = tool(line) {
            return Some(tool);
        }
        // A command, a shell's assignment or a definition: whatever follows is part of a launch text.
        let is_command = line.split_ascii_whitespace().any(|word| word.len() > 2 && word.starts_with("--"));
        if is_command || line.trim_start().starts_with("export ") {
            return None;
        }
    }
    None
}

/// The tool that prints such a line, by forms that no launch text has at the beginning of a line.
fn tool(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    // `  3%|▎         | 30/1000 [02:30<1:20:50,  5.00s/it]` (`tqdm/std.py`).
    let is_bar = digits > 0 && line.get(digits..).is_some_and(|rest| rest.starts_with("%|"));
    let has = |marks: &[&str]| marks.iter().all(|mark| line.contains(mark));
    let is_smi_table = line.starts_with("| NVIDIA-SMI ") || line.starts_with('|') && has(&["MiB /", "MiB |"]);
    let is_smi_query =
        line.starts_with("memory.used [MiB]") || has(&[", memory.used [MiB]"]) && !line.contains('-');
    if is_bar && line.ends_with(']') || line.starts_with("{'train_runtime':") || line.starts_with("{'loss':")
    {
        Some("Hugging Face's Trainer")
    } else if line.starts_with("| Allocated memory ") || line.starts_with("| PyTorch CUDA memory summary") {
        Some("torch.cuda.memory_summary")
    } else if has(&["Self CPU %", "# of Calls"]) {
        Some("torch.profiler")
    } else if is_smi_table || is_smi_query {
        Some("nvidia-smi")
    } else {
        None
    }
}

/// Reads the lines of a log and skips all others.
#[must_use]
pub fn read_log(text: &str) -> Log {
    let mut log = Log::default();
    for line in text.lines() {
        if log.iterations.len() + log.memory.len() == MOST {
            break;
        }
        if let Some(iteration) = iteration(line) {
            log.iterations.push(iteration);
        }
        if let Some(memory) = memory(line) {
            log.memory.push(memory);
        }
    }
    log
}

fn iteration(line: &str) -> Option<Iteration> {
    let milliseconds = after(line, &["elapsed time per iteration (ms):"]);
    let seconds =
        milliseconds.map(|ms| ms / 1e3).or_else(|| after(line, &["elapsed time per iteration (s):"]));
    let tflops = after(
        line,
        &["throughput per GPU (TFLOP/s/GPU):", "TFLOPs:", "TFLOP/s/GPU:", "samples per second and TFLOPs:"],
    );
    if seconds.is_none() && tflops.is_none() {
        return None;
    }
    Some(Iteration {
        number: after(line, &["iteration"]).and_then(whole),
        global_batch_size: after(line, &["global batch size:"]).and_then(whole),
        seconds: seconds.filter(|seconds| *seconds > 0.0),
        tflops_per_gpu: tflops.filter(|tflops| *tflops > 0.0),
    })
}

fn memory(line: &str) -> Option<Memory> {
    let bytes = |mark: &str| after(line, &[mark]).and_then(|mib| whole((mib * MIB).round()));
    let memory = Memory {
        rank: after(line, &["[Rank"]).and_then(whole),
        allocated: bytes("| allocated:")
            .or_else(|| bytes("memory (MB) | allocated:"))
            .or_else(|| bytes(" allocated:")),
        max_allocated: bytes("| max allocated:"),
        reserved: bytes("| reserved:"),
        max_reserved: bytes("| max reserved:"),
    };
    (line.contains("allocated:") && memory.max_allocated.or(memory.allocated).is_some()).then_some(memory)
}

/// The number after the first of these marks.
fn after(line: &str, marks: &[&str]) -> Option<f64> {
    marks.iter().find_map(|mark| {
        let rest = line.get(line.find(mark)? + mark.len()..)?.trim_start();
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E')))
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok().filter(|number: &f64| number.is_finite())
    })
}

/// A count that a log prints, as a whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> Option<u64> {
    /// Above this an f64 no longer represents every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    ((0.0..=EXACT).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::{is_log, printed_by, read_log};

    #[test]
    fn megatron_lines() {
        let text = " [2026-01-01 00:00:00] iteration        1/     100 | consumed samples:          512 | elapsed time per iteration (ms): 9000.0 | learning rate: 1.0E-06 | global batch size:   512 | lm loss: 1.0E+01 |\n\
            [Rank 0] (after 1 iterations) memory (MB) | allocated: 20000.5 | max allocated: 40000.0 | reserved: 50000.0 | max reserved: 51000.0\n\
            iteration        2/     100 | elapsed time per iteration (ms): 5100.5 | throughput per GPU (TFLOP/s/GPU): 410.3 | global batch size:   512 |\n\
            iteration        3/     100 | elapsed time per iteration (ms): 5000.0 | throughput per GPU (TFLOP/s/GPU): 420.3 | global batch size:   512 |\n\
            iteration        4/     100 | elapsed time per iteration (ms): 5050.0 |\nother text\n";
        assert!(is_log(text));
        let log = read_log(text);
        assert_eq!(log.iterations.len(), 4);
        assert_eq!(log.iterations[1].seconds, Some(5.1005));
        assert_eq!(log.iterations[1].number, Some(2));
        assert_eq!(log.iterations[0].global_batch_size, Some(512));
        assert_eq!(log.iterations[2].tflops_per_gpu, Some(420.3));
        assert_eq!(log.median_seconds(), Some(5.05));
        assert_eq!(log.memory.len(), 1);
        assert_eq!(log.memory[0].rank, Some(0));
        assert_eq!(log.max_allocated(), Some(40_000 * 1_048_576));
        assert_eq!(log.memory[0].allocated, Some(20_972_044_288 - 524_288 + 524_288));
        assert_eq!(log.memory[0].max_reserved, Some(51_000 * 1_048_576));
    }

    #[test]
    fn output_of_tools_is_told_from_what_starts_a_run() {
        let bar = "  3%|3         | 30/1000 [02:30<1:20:50,  5.00s/it]\r";
        let trainer = Some("Hugging Face's Trainer");
        assert_eq!(printed_by(bar), trainer);
        assert_eq!(printed_by(&format!("INFO:root:starts\n{bar}")), trainer);
        assert_eq!(printed_by("{'loss': 2.5, 'grad_norm': 1.0, 'epoch': 0.1}\n"), trainer);
        assert_eq!(printed_by(&format!("accelerate launch train.py --bf16 true\n{bar}")), None);
        assert_eq!(printed_by("# 3%| of the run\ntorchrun train.py --lr 1\n"), None);
        let table = "| N/A   41C    P0   345W /  700W |   71234MiB /  81559MiB |     98%      Default |\n";
        assert_eq!(printed_by(table), Some("nvidia-smi"));
        assert_eq!(printed_by("index, memory.used [MiB]\n0, 71234 MiB\n"), Some("nvidia-smi"));
        assert_eq!(printed_by("nvidia-smi --query-gpu=index,memory.used --format=csv\n"), None);
        let head = "                 Name    Self CPU %      Self CPU   CPU total %    # of Calls  \n";
        assert_eq!(printed_by(head), Some("torch.profiler"));
        assert_eq!(printed_by("torchrun pretrain_gpt.py --num-layers 2"), None);
    }

    #[test]
    fn nonsense_is_no_log() {
        assert!(!is_log("torchrun pretrain_gpt.py --num-layers 2"));
        assert!(!is_log("# prints elapsed time\n"));
        let log = read_log(
            "iteration x | elapsed time per iteration (ms): abc |\n allocated: -5 | max allocated: 1e999",
        );
        assert!(log.iterations.is_empty() && log.max_allocated().is_none());
    }
}
