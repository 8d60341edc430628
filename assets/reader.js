// The program that reads texts (src/reader/main.rs), in a worker or, for reading.js, in the page itself.
import load, { begin, read } from "./shardscope-reader.js";
import { bytes } from "./bytes.js";

const start = async () => {
  const [tables] = await Promise.all([bytes("tables.txt", "readers.txt"), load()]);
  begin(tables);
};

let starting = null;

// What did not arrive is asked for again by the next who needs it.
export const loaded = () => starting ??= start().catch((error) => {
  starting = null;
  throw error;
});

export const answer = (task) => read(task) ?? null;

// In the page itself there is a document, and nobody posts tasks.
if (typeof document === "undefined") {
  loaded().then(() => postMessage({}), () => { /* told when a task comes */ });
  addEventListener("message", async ({ data: { id, task } }) => {
    try {
      await loaded();
    } catch (_) {
      postMessage({ id, said: null });
      return;
    }
    try {
      postMessage({ id, said: answer(task) });
    } catch (error) {
      // A panic says what it was (src/crash.rs); a trap without one has only its name.
      postMessage({ id, fault: self.shardscopeFault || String(error) });
    }
  });
}
