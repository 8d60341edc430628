// The package against the terminal: the same input gives the same document.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
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

test("the report for people names its verdict", () => {
  assert.match(shardscope.report(script), /fits on/);
  assert.match(shardscope.report(script, "markdown"), /^## Verdict/);
});
