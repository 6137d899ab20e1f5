// Kills workers and producers until something breaks, or enough of them have died: npm run chaos
//   --kills <n>     how many kills (1000)          --seconds <n>  at most this long (900)
//   --seed <n>      repeat a run's choices         --store <name> sqlite (two to four workers on a file), or postgres:
//                   three nodes and two workers on a server of its own, which is stopped, crashes and is emptied of
//                   BullMQ's tickets meanwhile
//   --queue <url>   with postgres: redis://… instead of the same database, or the word store; Redis is flushed
//   --outages       instead of kills: three nodes on PostgreSQL run tasks while the database is away 20 times for 30 to
//                   90 s, with the usual lease of 30 s (about 35 minutes; takes --seed, and --seconds: the run ends
//                   after the outage in which they pass)
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    kills: { type: "string" },
    seconds: { type: "string" },
    seed: { type: "string" },
    store: { type: "string" },
    queue: { type: "string" },
    outages: { type: "boolean" },
  },
});

if (values.outages === true) {
  const { runOutages } = await import("../test/chaos/outages.ts");
  const seed = toCount("seed", values.seed ?? String(1 + Math.floor(Math.random() * 1_000_000)));
  process.stdout.write(`seed ${seed}\n`);
  const { outages, tasks, problems } = await runOutages({
    ...{ leaseMs: 30_000, outages: 20, shortestMs: 30_000, longestMs: 90_000, liveTasks: 60, seed },
    ...(values.seconds !== undefined && { maxMs: 1_000 * toCount("seconds", values.seconds) }),
    onProgress: (line) => process.stdout.write(`${line}\n`),
  });
  process.stdout.write(`${outages} outages, ${tasks} tasks, ${problems.length} problems\n`);
  for (const problem of problems) process.stdout.write(`  ${problem}\n`);
  process.exit(problems.length === 0 ? 0 : 1);
}

if (values.store !== undefined && !["sqlite", "postgres"].includes(values.store)) {
  process.stderr.write(`--store must be sqlite or postgres, not ${values.store}\n`);
  process.exit(2);
}
const { runChaos, summarize, violations } = await import("../test/chaos/driver.ts");
const seed = toCount("seed", values.seed ?? String(1 + Math.floor(Math.random() * 1_000_000)));
process.stdout.write(`seed ${seed}\n`);
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => interrupted.abort());
const report = await runChaos({
  ...(values.store !== undefined && { store: values.store }),
  ...(values.queue !== undefined && { queue: values.queue }),
  kills: toCount("kills", values.kills ?? "1000"),
  seconds: toCount("seconds", values.seconds ?? "900"),
  seed,
  signal: interrupted.signal,
  onProgress: (line) => process.stdout.write(`${line}\n`),
}).catch((error) => {
  if (interrupted.signal.aborted) process.exit(130);
  throw error;
});
process.stdout.write(`\n${summarize(report)}`);
process.exit(violations(report) === 0 ? 0 : 1);

function toCount(name, text) {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  process.stderr.write(`--${name} must be a positive whole number, not ${text}\n`);
  process.exit(2);
}
