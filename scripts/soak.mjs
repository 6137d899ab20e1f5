// Clients of every generation, deaths, questions and large results for as long as you like, then what was lost and what
// grew: npm run soak -- --minutes 12
//   --minutes <n>   how long (12); slopes are judged from 4 on     --seed <n>      repeat a run's choices
//   --clients <n>   at a time, in each of two homes (5)
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { minutes: { type: "string" }, seed: { type: "string" }, clients: { type: "string" } },
});
const { runSoak, soakViolations, summarizeSoak } = await import("../test/system/soak/soak.ts");
const seed = toCount("seed", values.seed ?? String(1 + Math.floor(Math.random() * 1_000_000)));
process.stdout.write(`seed ${seed}\n`);
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => interrupted.abort());
const report = await runSoak({
  minutes: toCount("minutes", values.minutes ?? "12"),
  seed,
  clients: toCount("clients", values.clients ?? "5"),
  signal: interrupted.signal,
  onProgress: (line) => process.stdout.write(`${line}\n`),
}).catch((error) => {
  if (interrupted.signal.aborted) process.exit(130);
  throw error;
});
process.stdout.write(`\n${summarizeSoak(report)}`);
process.exit(soakViolations(report) === 0 ? 0 : 1);

function toCount(name, text) {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  process.stderr.write(`--${name} must be a positive whole number, not ${text}\n`);
  process.exit(2);
}
