// node examples/node.mjs train.sh
import { readFileSync } from "node:fs";
import { estimate } from "shardscope";

const document = estimate({ text: readFileSync(process.argv[2], "utf8"), accelerator: "H100-SXM" });
for (const { severity, message, line } of document.diagnostics) console.error(`${severity}: ${message} (line ${line})`);
if (document.report) {
  const { memory, time } = document.report;
  console.log(memory.fits ? "fits" : "does not fit", (memory.worst.peak_reserved / 2 ** 30).toFixed(2), "GiB");
  console.log(time.step_seconds.toFixed(2), "s per step");
}
