// The program that reads texts (src/reader/main.rs), in a worker or, for reading.js, in the page itself.
import load, { begin, read } from "./shardscope-reader.js";

const start = async () => {
  const [answer] = await Promise.all([fetch("tables.txt"), load()]);
  begin(new Uint8Array(await answer.arrayBuffer()));
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
