// Times the engine in Node: reads lines `WORKLOAD WORK TURNS`, answers each with nanoseconds of processor time and the number
// of the result; and `PAIR`, answers with the course of a search. `src/main.rs` is the same natively.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { Search, Workload } = createRequire(import.meta.url)(process.argv[2]);
const known = [];

const spent = (before) => {
  const { user, system } = process.cpuUsage(before);
  return (user + system) * 1000;
};

const search = (pair) => {
  const before = process.cpuUsage();
  const search = Search.at(pair);
  if (!search) return "";
  let [best, course] = [Infinity, ""];
  const look = () => {
    const now = search.best();
    if (now < best) {
      best = now;
      course += `${spent(before)} ${now} `;
    }
  };
  look();
  while (search.step()) look();
  look();
  return `${spent(before)} ${search.decided()} ${search.estimated()}\t${search.found()}\t${course}`;
};

for await (const line of createInterface({ input: process.stdin })) {
  const [workload, work, turns] = line.split(" ").map(Number);
  if (work === undefined) {
    console.log(search(workload));
    continue;
  }
  known[workload] ??= Workload.at(workload);
  const before = process.cpuUsage();
  const result = known[workload].turns(work, turns);
  console.log(`${spent(before)} ${result}`);
}
