// esbuild examples/bundler.js --bundle --format=esm --outfile=out.js; the .wasm file is served beside it.
import { load, read } from "shardscope";

await load(new URL("./shardscope_js_bg.wasm", import.meta.url));
document.title = `${Object.keys(read("--num-layers 24").settings).length} settings`;
