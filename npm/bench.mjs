// How long reading takes in WebAssembly: `node npm/bench.mjs` after `cargo xtask npm --build`. The script is that of
// benches/read.rs; the budget is 6 ms, the document's settings written out included.
import { read } from "./dist/node.js";

const flags = ["--lr", "--min-lr", "--clip-grad", "--eval-iters", "--log-interval", "--save-interval", "--weight-decay", "--seed"];
let text = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n";
for (let size = 0; size < 50; size++)
  text += `if [ $MODEL_SIZE = ${size}B ]; then\n  NUM_LAYERS=${size + 12}\n  HIDDEN_SIZE=$((${size} * 128 + 1024))\n  NUM_HEADS=${size + 8}\nfi\n`;
text += 'GPT_ARGS="\n';
for (let option = 0; option < 150; option++) text += `    ${flags[option % flags.length]} \${VALUE_${option}:-${option}} \\\n`;
text += '    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 "\nARGS=(\n';
for (let option = 0; option < 100; option++) text += `    ${flags[option % flags.length]} "$(( ${option} + 1 ))" # a comment\n`;
text += ')\nfor i in $(seq 1 94); do L+=(1); done\ncat <<EOT > ds.json\n{ "stage": $ZERO, "x": [1, 2, 3] }\nEOT\n';
text += 'torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py $GPT_ARGS "${ARGS[@]}" 2>&1 | tee log\n';

const turns = 100;
let best = Infinity;
for (let round = 0; round < 10; round++) {
  const started = process.cpuUsage();
  for (let turn = 0; turn < turns; turn++) read({ text });
  const used = process.cpuUsage(started);
  best = Math.min(best, (used.user + used.system) / 1000 / turns);
}
console.log(`${best.toFixed(2)} ms of 6 ms    ${Math.round(text.length / 1000)} kB script, read and resolved, best of 10 rounds`);
