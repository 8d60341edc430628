// Loads the program of searches and questions (src/worker/main.rs), in a worker or in the page itself, and begins `task`.
// `tell` gets what is known every `slice` milliseconds.
import load, { work } from "./shardscope-worker.js";

const loaded = (async () => {
  const [answer] = await Promise.all([fetch("tables.txt"), load()]);
  return new Uint8Array(await answer.arrayBuffer());
})();

export const begin = async (task, slice, tell) => work(await loaded, task, slice, tell);
