// Loads the program of searches and questions (src/worker/main.rs), in a worker or in the page itself, and begins `task`.
// `tell` gets what is known every `slice` milliseconds.
import load, { work } from "./shardscope-worker.js";
import { bytes } from "./bytes.js";

const loaded = Promise.all([bytes("tables.txt", "readers.txt"), load()]);

export const begin = async (task, slice, tell) => {
  const [tables] = await loaded;
  return work(tables, task, slice, tell);
};
