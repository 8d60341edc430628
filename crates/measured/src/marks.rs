//! What tells files of tools from launch texts before they are read.

/// Words of which every text that is read here has at least one, with what they are from.
const MARKS: [&str; 16] = [
    // Megatron-LM: `training.py`, report_memory.
    "elapsed time per iteration",
    "allocated:",
    // tqdm's rates and the Trainer's metrics; trainer_state.json has them in its history.
    "s/it",
    "it/s",
    "train_steps_per_second",
    "train_runtime",
    // torch.cuda.memory_summary, memory_stats.
    "Allocated memory",
    "GPU reserved memory",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.peak",
    // A memory snapshot, and the profiler's table and trace.
    "\"segments\"",
    "ProfilerStep",
    "\"traceEvents\"",
    // nvidia-smi.
    "MiB /",
    "memory.used",
    "FB Memory Usage",
];
/// Endings of files that start a run or configure it, whatever else they hold: a notebook keeps the output of its cells.
const LAUNCHES: [&str; 8] = [".sh", ".sbatch", ".slurm", ".py", ".ipynb", ".yaml", ".yml", ".toml"];

/// Whether reading `text` could give figures: without one of the marks it gives none, and need not be tried.
#[must_use]
pub fn may_hold(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Whether a file is a launch text for certain, although it may quote the output of tools.
#[must_use]
pub fn is_launch_text(name: &str, text: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LAUNCHES.iter().any(|ending| name.ends_with(ending)) || text.starts_with("#!")
}
