// Runs the page's own engine beside the page, which hands over its script's address and the module it has compiled.
// What is to be searched is left where the engine looks for it when it starts (src/app/beside.rs). Nothing told means
// that the page must search by itself.
addEventListener("message", async ({ data: { glue, module, asked } }) => {
  try {
    globalThis.asked = asked;
    globalThis.tables = await (await fetch("tables.json")).text();
    const engine = await import(glue);
    await engine.default({ module_or_path: module });
  } catch (_) {
    postMessage("");
  }
}, { once: true });
