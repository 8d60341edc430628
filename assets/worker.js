// Runs the page's own engine beside the page, which hands over its script's address and the module it has compiled.
// What is to be searched is left where the engine looks for it when it starts (src/app/beside.rs). Nothing told means
// that the page must search by itself.
addEventListener("message", async ({ data: { glue, module, asked } }) => {
  try {
    globalThis.asked = asked;
    const text = async (file) => (await fetch(file)).text();
    const files = ["bridge.tsv", "titan.tsv", "models.tsv", "rules.txt", "defaults.txt", "nemo-rl.txt", "names.txt"];
    globalThis.tables = await Promise.all(files.map(text)).catch(() => []);
    const engine = await import(glue);
    await engine.default({ module_or_path: module });
  } catch (_) {
    postMessage("");
  }
}, { once: true });
