// Times the engine in Node: reads lines `WORKLOAD WORK TURNS`, answers each with nanoseconds of processor time and the number
// of the result. `src/main.rs` is the same natively.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { Workload } = createRequire(import.meta.url)(process.argv[2]);
const known = [];
for await (const line of createInterface({ input: process.stdin })) {
  const [workload, work, turns] = line.split(" ").map(Number);
  known[workload] ??= Workload.at(workload);
  const before = process.cpuUsage();
  const result = known[workload].turns(work, turns);
  const { user, system } = process.cpuUsage(before);
  console.log(`${(user + system) * 1000} ${result}`);
}
