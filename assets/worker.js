// Searches, answers a question or reads a file beside the page, which sends the task and hears what is known of it. Nothing told means that
// the page must do it by itself.
import { begin } from "./search.js";

// How often the page is told once the first has been told. Unit: millisecond.
const SLICE = 100;

addEventListener("message", async ({ data }) => {
  try {
    await begin(data, SLICE, (told) => postMessage(told));
  } catch (_) {
    postMessage("");
  }
}, { once: true });
