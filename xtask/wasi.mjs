// Runs a program of WebAssembly as a command: `node wasi.mjs PROGRAM [WORD...]`.
import { existsSync, readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const [file, ...words] = process.argv.slice(2);
// WASI has no clock of the processor: a program that times itself reads /proc, where there is one.
const preopens = existsSync("/proc") ? { "/proc": "/proc" } : {};
const wasi = new WASI({ version: "preview1", args: ["example", ...words], preopens, returnOnExit: true });
const { instance } = await WebAssembly.instantiate(readFileSync(file), wasi.getImportObject());
process.exitCode = wasi.start(instance);
