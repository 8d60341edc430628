// The package as a stranger gets it: packed, installed into an empty folder, and used there by its name.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const scripts = join(root, "tests/data/launch");
const names = readdirSync(scripts).filter((name) => name.endsWith(".sh"));
const script = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000 --bf16\n";
let folder;
const run = (program, words, options = {}) => execFileSync(program, words, { cwd: folder, encoding: "utf8", ...options });

before(() => {
  folder = mkdtempSync(join(tmpdir(), "shardscope-npm-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  writeFileSync(join(folder, "train.sh"), script);
  run("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: join(root, "npm/dist") });
  const archive = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  // It has no dependencies: nothing is asked of a registry.
  run("npm", ["install", "--silent", "--offline", "--no-audit", "--no-fund", `./${archive}`]);
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("npx calls the program, whose exit code is the verdict", () => {
  for (const [accelerator, status, said] of [["B200", 0, /^fits: /], ["V100-SXM2-16GB", 1, /^does not fit: /]]) {
    const words = ["--offline", "--no", "shardscope", "check", "--accelerator", accelerator, "train.sh"];
    const told = spawnSync("npx", words, { cwd: folder, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
    assert.equal(told.status, status, told.stderr);
    assert.match(told.stdout, said);
  }
});

test("the module is imported by its name, and its examples run", () => {
  const version = JSON.parse(readFileSync(join(root, "npm/package.json"), "utf8")).version;
  const manifest = JSON.parse(readFileSync(join(folder, "node_modules/shardscope/package.json"), "utf8"));
  assert.equal(manifest.version, version);
  for (const file of [...manifest.files, manifest.types, manifest.bin.shardscope]) {
    assert.ok(existsSync(join(folder, "node_modules/shardscope", file)), file);
  }
  const example = join(folder, "node_modules/shardscope/examples/node.mjs");
  assert.match(run(process.execPath, [example, "train.sh"]), /^(fits|does not fit) \d+\.\d\d GiB\n\d+\.\d\d s per step\n$/);
});

test("its types are those of the documents", { skip: process.env.TSC ? false : "NOT CHECKED: TSC names no TypeScript" }, () => {
  // As literals, of which a key that the types do not have is an error as well as one that is missing.
  const write = `
    import { readFileSync, writeFileSync } from "node:fs";
    import { ask, estimate, search } from "shardscope";
    const typed = (name, type, value) =>
      writeFileSync(name + ".ts", \`import type { \${type} } from "shardscope";\\nexport const it: \${type} = \${JSON.stringify(value)};\\n\`);
    let plans = 0;
    process.argv.slice(1).forEach((file, place) => {
      const document = estimate({ text: readFileSync(file, "utf8"), accelerator: "H100-SXM" });
      plans += document.report ? 1 : 0;
      typed("document" + place, "Document", document);
    });
    const text = readFileSync("train.sh", "utf8");
    typed("search", "Search", search(text, { limit: 3, tries: 100 }));
    typed("answer", "Answer", ask(text, { question: "fewest-gpus" }));
    console.log(plans);
  `;
  const paths = names.map((name) => join(scripts, name));
  const plans = Number(run(process.execPath, ["--input-type=module", "--eval", write, "--", ...paths]));
  assert.ok(plans > 10, `${plans} plans`);
  writeFileSync(join(folder, "use.ts"), `
    import { ask, estimate, load, open, read, report, schema, search, share } from "shardscope";
    await load();
    const input = { text: "x", accelerator: "H100-SXM", settings: { tensor_model_parallel_size: 2, bf16: true } };
    const bytes: number | undefined = estimate(input).report?.memory.worst.peak_reserved;
    const chosen: boolean | undefined = ask(input, { question: "cheapest", tokens: 1e12, price: 2 }).lines[0]?.chosen;
    const text: string = report(input, "markdown") + share(open(share(input))) + schema() + read("x").schema;
    const step: number | undefined = search(input, { limit: 1 }).best[0]?.step_seconds;
    export const all = [bytes, chosen, text, step];
  `);
  const sources = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  assert.equal(sources.length, names.length + 3);
  const strict = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"];
  const told = spawnSync(process.execPath, [process.env.TSC, ...strict, ...sources], { cwd: folder, encoding: "utf8" });
  assert.equal(told.status, 0, told.stdout.slice(0, 4000));
});
