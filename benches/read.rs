//! How long reading takes: `cargo bench --bench read`. Budgets: a 15 kB script under 2 ms, hostile megabytes under 100 ms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use shardscope::intake::launch;
use shardscope::intake::shell::Environment;
use shardscope::text::Source;

#[path = "../tests/suite/hostile.rs"]
mod hostile;

/// A launch script of about 15 kB: strings, arrays, an if-chain, loops, a here-document, comments.
fn script() -> String {
    let mut text = String::from("#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n");
    for size in 0..40_u32 {
        text += &format!(
            "if [ $MODEL_SIZE = {size}B ]; then\n  NUM_LAYERS={}\n  HIDDEN_SIZE=$(({size} * 128 + 1024))\n  NUM_HEADS={}\nfi\n",
            size + 12,
            size + 8
        );
    }
    text += "GPT_ARGS=\"\n";
    for option in 0..120 {
        text += &format!("    --option-number-{option} ${{VALUE_{option}:-{option}}} \\\n");
    }
    text += "    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 \"\n";
    text += "ARGS=(\n";
    for option in 0..80 {
        text += &format!("    --array-option-{option} \"$(( {option} + 1 ))\" # a comment\n");
    }
    text += ")\nfor i in $(seq 1 94); do L+=(1); done\ncat <<EOT > ds.json\n{ \"stage\": $ZERO, \"x\": [1, 2, 3] }\nEOT\n";
    text += "torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py $GPT_ARGS \"${ARGS[@]}\" 2>&1 | tee log\n";
    text
}

fn time(text: &str) -> Duration {
    let started = Instant::now();
    let source = Source::new(text);
    black_box(launch::read(&source, &Environment::default()).reading());
    started.elapsed()
}

fn main() {
    let text = script();
    let mut times: Vec<_> = (0..200).map(|_| time(&text)).collect();
    times.sort();
    println!("{:>9.3} ms of 2 ms    {} kB script, median of 200", millis(times[100]), text.len() / 1000);
    for (name, text) in hostile::texts(1 << 20) {
        let best = (0..3).map(|_| time(&text)).min().unwrap_or_default();
        println!("{:>9.3} ms of 100 ms  {name}, {} kB", millis(best), text.len() / 1000);
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
