// Asks the program that reads texts (src/reader/main.rs): in a worker, which starts once and stays, or in the page itself
// where there can be none, as in a sandboxed frame. A reply is a text; null where the program did not arrive; undefined where
// a later question took the place of this one. A fault of the program rejects with what it said.
let worker = null;
let isReady = false;
let last = 0;
// A question that nobody wants any more is broken off after so long; starting another worker takes some of that. Unit:
// millisecond.
const LONG = 300;
const waiting = new Map();

const hire = () => {
  try {
    worker = new Worker("reader.js", { type: "module" });
  } catch (_) {
    return false;
  }
  isReady = false;
  worker.onmessage = ({ data: { id, said, fault } }) => {
    isReady = true;
    if (id === undefined) return;
    const one = waiting.get(id);
    waiting.delete(id);
    // A program that broke answers nothing any more, and one that did not arrive is asked for anew.
    if (fault !== undefined || said === null) dismiss();
    if (!one) return;
    if (fault === undefined) one.done(said);
    else one.failed(new Error(fault));
    if (!worker) again();
  };
  // It could not be loaded.
  worker.onerror = () => {
    dismiss();
    const all = [...waiting.values()];
    waiting.clear();
    for (const one of all) here(one.task).then(one.done, one.failed);
  };
  return true;
};

const dismiss = () => {
  if (worker) worker.terminate();
  worker = null;
};

// What still waits is asked of another worker.
const again = () => {
  if (waiting.size === 0 || !hire()) return;
  for (const [id, { task }] of waiting) worker.postMessage({ id, task });
};

const here = async (task) => {
  let program;
  try {
    program = await import("./reader.js");
    await program.loaded();
  } catch (_) {
    return null;
  }
  return program.answer(task);
};

// Has the program at hand before it is asked.
export const warm = () => {
  if (!worker) hire();
};

// With `only`, nothing asked before with `only` is wanted any more.
export const ask = (task, only) => {
  let busy = false;
  for (const [id, one] of waiting) {
    if (!only || !one.only) continue;
    waiting.delete(id);
    one.done(undefined);
    busy ||= isReady && performance.now() - one.since > LONG;
  }
  if (busy) {
    dismiss();
    again();
  }
  if (!worker && !hire()) return here(task);
  const id = ++last;
  return new Promise((done, failed) => {
    waiting.set(id, { task, only, done, failed, since: performance.now() });
    worker.postMessage({ id, task });
  });
};
