// The engine as functions on plain objects. `load` once, then everything is synchronous.
import init, { initSync } from "./shardscope_js.js";
import * as engine from "./shardscope_js.js";

/** Loads the engine. In a browser or bundler no argument is needed; in Node pass the bytes of the .wasm file. */
export async function load(wasm) {
  if (wasm instanceof ArrayBuffer || ArrayBuffer.isView(wasm)) initSync({ module: wasm });
  else await init(wasm === undefined ? undefined : { module_or_path: wasm });
}

const call = (name, input) => JSON.parse(engine[name](JSON.stringify(normal(input))));
const normal = (input) => (typeof input === "string" ? { text: input } : (input ?? {}));

/** What the texts say: settings with their origin, open questions, diagnostics. */
export const read = (input) => call("read", input);
/** The whole document `shardscope/report/2`. */
export const estimate = (input) => call("estimate", input);
/** The report for people: "text" or "markdown"; empty when there is no plan. */
export const report = (input, format = "text") =>
  engine.reportText(JSON.stringify(normal(input)), format === "markdown");
/** Other layouts of the same run: the fastest that fit, and those that none beats in both time and memory. */
export function search(input, { limit = 20, tries = 0, vary = {} } = {}) {
  const found = JSON.parse(engine.search(JSON.stringify(normal(input)), limit, tries, JSON.stringify(vary)));
  if (found.error) throw new Error(found.error);
  return found;
}
/** Why a layout ("TP 4 PP 8 recompute full") is not the fastest: refused, out of memory, or slower by what. */
export function whyNot(input, layout) {
  const told = JSON.parse(engine.whyNot(JSON.stringify(normal(input)), layout));
  if (told.error) throw new Error(told.error);
  return told;
}
/** The answer to a question that people have before they launch, with every size, kind or model that was looked at. */
export function ask(input, asked) {
  const answer = JSON.parse(engine.ask(JSON.stringify(normal(input)), JSON.stringify(asked)));
  if (answer.error) throw new Error(answer.error);
  return answer;
}
/** The fragment of a link (without #) that carries the input. */
export const share = (input) => engine.share(JSON.stringify(normal(input)));
/** The input that a link's fragment carries. Throws a sentence when the link cannot be read. */
export function open(fragment) {
  const input = JSON.parse(engine.open(fragment));
  if (input.error) throw new Error(input.error);
  return input;
}
/** The version of the document's form. */
export const schema = () => engine.schema();
