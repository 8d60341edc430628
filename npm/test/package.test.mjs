// The package against the terminal: the same input gives the same document.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import * as shardscope from "../dist/node.js";

const script = `torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 4096 \\
  --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \\
  --global-batch-size 512 --vocab-size 50257 --bf16 --swiglu --tensor-model-parallel-size 2 \\
  --pipeline-model-parallel-size 2 --use-distributed-optimizer
`;

/** The document of the terminal; its exit code is 2 without a report. */
function terminal(text, ...options) {
  try {
    const told = { input: text, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["pipe", "pipe", "ignore"] };
    return JSON.parse(execFileSync(process.env.SHARDSCOPE_REPORT, ["report", "--format", "json", ...options, "-"], told));
  } catch (error) {
    if (error.status !== 2) throw error;
    return JSON.parse(error.stdout);
  }
}

/** The same document, figure by figure; times may differ in the last bits between processors. */
function same(one, other, path = "") {
  if (typeof one === "number" && typeof other === "number") {
    const exact = Number.isInteger(one) && Number.isInteger(other) && !path.includes("flops");
    const close = Math.abs(one - other) <= 1e-12 * Math.max(Math.abs(one), Math.abs(other));
    assert.ok(exact ? one === other : close, `${path}: ${one} and ${other}`);
  } else if (one && other && typeof one === "object" && typeof other === "object") {
    assert.deepEqual(Object.keys(one), Object.keys(other), path);
    for (const key of Object.keys(one)) same(one[key], other[key], `${path}/${key}`);
  } else {
    assert.equal(one, other, path);
  }
}

test("the document is the terminal's", () => {
  const document = shardscope.estimate({ text: script, accelerator: "A100-SXM-80GB" });
  assert.equal(document.schema, shardscope.schema());
  assert.ok(document.report.memory.worst.peak_reserved > 2 ** 34);
  same(document, terminal(script, "--accelerator", "A100-SXM-80GB"));
});

test("what makes no plan is said, and nothing throws", () => {
  for (const text of ["", "Dear reader,", "torchrun x.py --num-layers -3 --hidden-size 10", "\u0000".repeat(999)]) {
    const document = shardscope.estimate(text);
    assert.equal(document.report, null);
    assert.ok(document.diagnostics.some(({ severity }) => severity === "error"), JSON.stringify(text));
    same(document, terminal(text));
  }
});

test("links carry the input and come back", () => {
  const input = { text: script, settings: { tensor_model_parallel_size: 4 }, environment: { NODES: "2" } };
  const opened = shardscope.open(shardscope.share(input));
  assert.deepEqual(shardscope.estimate(opened).report, shardscope.estimate(input).report);
  assert.throws(() => shardscope.open("z1:!"), /damaged/);
});

test("a search finds layouts that fit", () => {
  const found = shardscope.search(script, { limit: 3, tries: 3000 });
  assert.ok(found.best.length > 0 && found.best.length <= 3);
  const best = shardscope.estimate({ text: script, settings: found.best[0].change }).report;
  assert.equal(best.memory.worst.peak_reserved, found.best[0].peak_reserved);
});

test("dimensions of a search are fixed, ranged or open, and refusals have reasons", () => {
  const vary = { tp: "fixed", pp: [1, 2], cp: 1, mbs: "fixed", recompute: "fixed" };
  const found = shardscope.search(script, { vary });
  const { report } = shardscope.estimate(script);
  for (const { change } of found.best) {
    assert.ok(!("tensor_model_parallel_size" in change) && !("micro_batch_size" in change), JSON.stringify(change));
  }
  const sum = Object.values(found.refused_by_reason).reduce((sum, count) => sum + count, 0);
  assert.equal(sum, found.refused);
  assert.ok(found.best.length > 0 && found.best[0].step_seconds <= report.time.step_seconds);
  assert.throws(() => shardscope.search(script, { vary: { dp: 2 } }), /no dimension dp/);
  assert.throws(() => shardscope.search(script, { vary: { recompute: [1, 2] } }), /recompute has no sizes/);
  const largest = shardscope.ask(script, { question: "largest-micro-batch", vary: { recompute: "fixed" } });
  assert.ok(largest.lines.every(({ layout }) => !layout || !("recompute_granularity" in layout.change)));
});

test("any layout says why it is not the answer", () => {
  const { why, starts, change, best } = shardscope.whyNot(script, "TP 1 PP 1 MBS 8");
  assert.ok(starts && /out of memory by|slower/.test(why), why);
  assert.equal(change.micro_batch_size, "8");
  assert.ok(best.step_seconds > 0);
  assert.match(shardscope.whyNot(script, "TP 3").why, /^refused: /);
  assert.throws(() => shardscope.whyNot(script, "eight"), /eight is not understood/);
});

test("a question is answered, and its answer is a plan", () => {
  const { answer, answered, lines } = shardscope.ask(script, { question: "fewest-gpus" });
  assert.ok(answered && /hold the run/.test(answer), answer);
  const { gpus, layout } = lines.find((line) => line.chosen);
  const best = shardscope.estimate({ text: script, settings: layout.change }).report;
  assert.equal(best.memory.worst.peak_reserved, layout.peak_reserved);
  assert.ok(answer.startsWith(`${gpus} `), answer);
  assert.throws(() => shardscope.ask(script, { question: "cheapest" }), /How many tokens/);
  assert.throws(() => shardscope.ask(script, { question: "what" }), /cannot be read/);
  assert.throws(() => shardscope.ask(script, { question: "fewest-gpus", price: 2 }), /takes no price/);
  assert.throws(() => shardscope.ask(script, { question: "cheapest", tokens: 1e9, price: -2 }), /price is not a positive number/);
  const prices = { "H100-SXM": 1, "H200-SXM": 50 };
  const cheapest = shardscope.ask(script, { question: "which-gpu", tokens: 1e9, prices, vary: { mbs: "fixed" } });
  assert.match(cheapest.answer, /H100-SXM cost least/);
  assert.deepEqual(cheapest.lines.map(({ name }) => name), ["H100-SXM", "H200-SXM"]);
});

test("every question has an answer, and its answer is the plan that it says", () => {
  // Little is varied, so that each takes a moment.
  const vary = { vpp: "fixed", split: "fixed", schedule: "fixed", cp: "fixed", "rank-order": "fixed", mbs: "fixed", overlap: "fixed" };
  const budget = { tokens: 1e9, price: 2, most_nodes: 2 };
  for (const [asked, said] of [
    [{ question: "fewest-gpus" }, /holds? the run/],
    [{ question: "fewest-gpus", train: "lora" }, /holds? the run/],
    [{ question: "which-gpu", prices: { "H100-SXM": 2, "A100-SXM-80GB": 1 }, tokens: 1e9 }, /cost least/],
    [{ question: "cheapest", ...budget, days: 365 }, /cost least/],
    [{ question: "scaling", most_nodes: 4 }, /./],
    [{ question: "one-more-node" }, /./],
    [{ question: "longest-sequence" }, /./],
    [{ question: "largest-micro-batch", vary: { ...vary, mbs: "open" } }, /./],
    [{ question: "largest-model", train: "qlora" }, /is the largest model of the catalog/],
  ]) {
    const { answer, answered, lines } = shardscope.ask(script, { vary, ...asked });
    assert.ok(answered && said.test(answer), `${JSON.stringify(asked)}: ${answer}`);
    const chosen = lines.find((line) => line.chosen);
    // A model of the catalog is a plan of its own.
    const input = { text: asked.question === "largest-model" ? "" : script, settings: chosen.layout.change };
    const { report } = shardscope.estimate(input);
    assert.equal(report.memory.worst.peak_reserved, chosen.layout.peak_reserved, JSON.stringify(asked));
    // A search adds up the parts of a step in another order than a report: the last bits may differ.
    const { step_seconds: step } = report.time;
    assert.ok(Math.abs(step / chosen.layout.step_seconds - 1) < 1e-12, `${JSON.stringify(asked)}: ${step}`);
  }
});

test("the report for people names its verdict", () => {
  assert.match(shardscope.report(script), /Fits on/);
  assert.match(shardscope.report(script, "markdown"), /^## Verdict/);
});

/** `npx shardscope` with these words; its exit code, output and errors. */
function command(words, input = "", cwd = undefined) {
  const program = new URL("../dist/command.js", import.meta.url).pathname;
  const told = spawnSync(process.execPath, [program, ...words], { input, cwd, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
  return [told.status, told.stdout, told.stderr];
}

test("the command is the program of the terminal", () => {
  const folder = mkdtempSync(join(tmpdir(), "shardscope-"));
  const file = join(folder, "train.sh");
  writeFileSync(file, script);
  for (const [words, input] of [
    [["check", "--accelerator", "H100-SXM", file], ""],
    [["check", "-"], script],
    [["check", "--accelerator", "V100-SXM2-16GB", "-"], script],
    [["check", "-"], "echo\n"],
    [["compare", file, "--with", "micro_batch_size=2"], ""],
    [["apply", "micro_batch_size=2", file], ""],
    [["report", "no-such-file.sh"], ""],
    [["accelerators", "H100"], ""],
  ]) {
    const own = spawnSync(process.env.SHARDSCOPE_REPORT, words, { input, encoding: "utf8" });
    const [status, stdout, stderr] = command(words, input);
    assert.equal(status, own.status, words.join(" "));
    assert.equal(stdout, own.stdout, words.join(" "));
    // The words of the system's own errors differ.
    assert.equal(stderr.split(":")[0], own.stderr.split(":")[0], words.join(" "));
  }
  assert.equal(command(["apply", "--in-place", "micro_batch_size=2", file])[0], 0);
  assert.match(readFileSync(file, "utf8"), /--micro-batch-size 2 /);
  // A folder may be called as a command is.
  mkdirSync(join(folder, "accelerators"));
  assert.equal(command(["accelerators", "H100"], "", folder)[0], 0);
  rmSync(folder, { recursive: true });
});

// What WASI has for connections (accept, send, receive) begins with sock_; the engine for JavaScript may ask for nothing but what
// wasm-bindgen makes of values and errors.
test("neither program has a means to open a connection", async () => {
  const imports = async (file) =>
    WebAssembly.Module.imports(await WebAssembly.compile(readFileSync(new URL(`../dist/${file}`, import.meta.url))));
  const command = await imports("shardscope.wasm");
  assert.ok(command.some(({ name }) => name === "fd_read"));
  for (const { module, name } of command) {
    assert.ok(module === "wasi_snapshot_preview1" && !name.startsWith("sock_"), `${module} ${name}`);
  }
  for (const { name } of await imports("shardscope_js_bg.wasm")) assert.doesNotMatch(name, /fetch|socket|xmlhttp|beacon/i);
});

test("the command follows names of files from its folder, as the program does", () => {
  const folder = mkdtempSync(join(tmpdir(), "shardscope-"));
  const write = (name, text) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  const zero = (stage) => `{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": ${stage}}}\n`;
  const model = "--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 2 --model_max_length 2048 --bf16 True";
  const trainer = `deepspeed --num_gpus 8 train.py ${model} --deepspeed conf/ds.json\n`;
  const launch = `accelerate launch --config_file fsdp.yaml train.py ${model}\n`;
  write("train.sh", trainer);
  write("conf/ds.json", zero(2));
  write("launch.sh", launch);
  write("fsdp.yaml", "distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n");
  write("old/train.sh", trainer);
  write("old/conf/ds.json", zero(3));
  // Words of a call that are names of files as well.
  write("H100", "");
  write("zero_stage=3", "");
  for (const [words, input] of [
    [["report", "--format", "json", "train.sh"], ""],
    [["report", "train.sh"], ""],
    [["check", "./train.sh"], ""],
    [["check", "launch.sh"], ""],
    [["report", "launch.sh"], ""],
    // Standard input has no folder but that of the call.
    [["check", "-"], trainer],
    [["check", "-"], launch],
    [["compare", "old/train.sh", "train.sh"], ""],
    [["compare", "train.sh", "--with", "zero_stage=3"], ""],
    [["apply", "micro_batch_size=4", "train.sh"], ""],
    [["apply", "micro_batch_size=4", "old/train.sh"], ""],
    [["link", "train.sh"], ""],
    [["review", "--before", "old", "conf/ds.json"], ""],
    [["review", "--before", "old", "--after", ".", "train.sh", "conf/ds.json"], ""],
    [["review", "--before", "old", "-"], "conf/ds.json\n"],
    [["search", "train.sh"], ""],
    [["models", "llama-3"], ""],
    [["accelerators", "H100"], ""],
    [["settings", "zero"], ""],
    [["check", "nothing.sh"], ""],
  ]) {
    const own = spawnSync(process.env.SHARDSCOPE_REPORT, words, { input, cwd: folder, encoding: "utf8" });
    const [status, stdout, stderr] = command(words, input, folder);
    assert.equal(status, own.status, words.join(" "));
    if (words.includes("json")) same(JSON.parse(stdout), JSON.parse(own.stdout));
    else assert.equal(stdout, own.stdout, words.join(" "));
    assert.equal(stderr.replace(/ \(os error.*/, ""), own.stderr.replace(/ \(os error.*/, ""), words.join(" "));
  }
  // What lies beside the scripts was read: they differ in it alone.
  assert.match(command(["compare", "old/train.sh", "train.sh"], "", folder)[1], /zero_stage +3 → 2/);
  const met = command(["review", "--before", "old", "--comment-file", "said.md", "conf/ds.json"], "", folder);
  assert.equal(met[0], 0, met[2]);
  assert.match(readFileSync(join(folder, "said.md"), "utf8"), /train\.sh/);
  rmSync(folder, { recursive: true });
});
