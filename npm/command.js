#!/usr/bin/env node
// `npx shardscope`: the program of the terminal, compiled to WebAssembly (WASI) and run by Node. It has files and standard input
// and output, and no network. `submit` and `mcp` start and serve processes, which WASI has not: install the program for them.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { parse, resolve } from "node:path";

// Node says at every start that WASI is experimental; what is used of it here has been stable since Node 18.
const warn = process.emitWarning;
process.emitWarning = (warning, ...rest) => {
  if (!String(warning).includes("WASI")) warn.call(process, warning, ...rest);
};
const { WASI } = await import("node:wasi");

const here = process.cwd();
const root = parse(here).root;
// A path from the root of the drive, as WASI has it.
const inside = (path) => "/" + resolve(here, path).slice(root.length).replaceAll("\\", "/");
// The program goes to the folder of the call (PWD) and follows names of files from there. What it cannot follow is Windows' own way
// to write them.
const words = process.argv.slice(2).map((word, index, all) => {
  if (root === "/" || !/\\|(^|=)[a-z]:/i.test(word)) return word;
  if (all[index - 1] === "--comment-file") return inside(word);
  const [, option, value] = /^(--[a-z-]+=)(.+)$/s.exec(word) ?? [undefined, "", word];
  return existsSync(resolve(here, value)) ? option + inside(value) : word;
});
const colours = process.stdout.isTTY && process.env.NO_COLOR === undefined && !words.some((word) => word.startsWith("--color"));

const wasi = new WASI({
  version: "preview1",
  args: ["shardscope", ...(colours ? ["--color=always"] : []), ...words],
  env: { ...process.env, PWD: inside(here) },
  preopens: { "/": root },
  returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(new URL("./shardscope.wasm", import.meta.url)));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
