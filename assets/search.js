// Loads the program of searches and questions (src/worker/main.rs), in a worker or in the page itself, and begins `task`: a text,
// or a file of the run's own tools that is to be read. `tell` gets what is known every `slice` milliseconds.
import load, { measure, work } from "./shardscope-worker.js";
import { bytes } from "./bytes.js";

const loaded = Promise.all([bytes("tables.txt", "readers.txt"), load()]);

export const begin = async (task, slice, tell) => {
  const [tables] = await loaded;
  if (typeof task === "string") return work(tables, task, slice, tell);
  tell(measure(new Uint8Array(await task.arrayBuffer())));
};
