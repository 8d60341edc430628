// In Node the engine is read from the file beside this one; import and use it.
import { readFileSync } from "node:fs";
import { load } from "./index.js";

await load(readFileSync(new URL("./shardscope_js_bg.wasm", import.meta.url)));
export * from "./index.js";
