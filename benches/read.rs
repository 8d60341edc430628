//! How long reading takes: `cargo bench --bench read`. Budgets: a 15 kB script under 2 ms, hostile megabytes under 100 ms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use shardscope::bash::Environment;
use shardscope::launch::{Request, read};
use shardscope::source::Source;

#[path = "../tests/suite/hostile.rs"]
mod hostile;
#[path = "../tests/suite/hostile_files.rs"]
mod hostile_files;
#[path = "../speed/src/processor.rs"]
mod processor;
use processor::processor_time;

/// Flags that Megatron-LM knows, for lack of unknown ones in real scripts.
const FLAGS: [&str; 8] = [
    "--lr",
    "--min-lr",
    "--clip-grad",
    "--eval-iters",
    "--log-interval",
    "--save-interval",
    "--weight-decay",
    "--seed",
];

/// A launch script of about 15 kB: strings, arrays, an if-chain, loops, a here-document, comments.
fn script() -> String {
    let mut text = String::from("#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n");
    for size in 0..50_u32 {
        text += &format!(
            "if [ $MODEL_SIZE = {size}B ]; then\n  NUM_LAYERS={}\n  HIDDEN_SIZE=$(({size} * 128 + 1024))\n  NUM_HEADS={}\nfi\n",
            size + 12,
            size + 8
        );
    }
    text += "GPT_ARGS=\"\n";
    for option in 0..150 {
        let flag = FLAGS[option % FLAGS.len()];
        text += &format!("    {flag} ${{VALUE_{option}:-{option}}} \\\n");
    }
    text += "    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 \"\n";
    text += "ARGS=(\n";
    for option in 0..100 {
        let flag = FLAGS[option % FLAGS.len()];
        text += &format!("    {flag} \"$(( {option} + 1 ))\" # a comment\n");
    }
    text += ")\nfor i in $(seq 1 94); do L+=(1); done\ncat <<EOT > ds.json\n{ \"stage\": $ZERO, \"x\": [1, 2, 3] }\nEOT\n";
    text += "torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py $GPT_ARGS \"${ARGS[@]}\" 2>&1 | tee log\n";
    text
}

/// The mean time of so many readings.
fn time(name: &str, text: &str, turns: u32) -> Duration {
    let (started, used) = (Instant::now(), processor_time());
    for _ in 0..turns {
        let source = Source::from_files([(name, text)]);
        let request = Request { source: &source, environment: &Environment::default(), overrides: &[] };
        black_box(read(&request));
    }
    let took = match (used, processor_time()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => started.elapsed(),
    };
    took / turns
}

fn main() {
    let text = script();
    // The fastest round counts: what is slower was slowed by others on the machine.
    let best = (0..5).map(|_| time("", &text, 100)).min().unwrap_or_default();
    println!("{:>9.3} ms of 2 ms    {} kB script, read and resolved", millis(best), text.len() / 1000);
    let scripts = hostile::texts(1 << 20).into_iter().map(|(name, text)| (format!("{name:?}"), "", text));
    for (what, name, text) in scripts.chain(hostile_files::files(1 << 20)) {
        let best = (0..3).map(|_| time(name, &text, 1)).min().unwrap_or_default();
        println!("{:>9.3} ms of 100 ms  {what}, {} kB", millis(best), text.len() / 1000);
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
