// Hosts that come to `wrap` and leave it, half of them by kill -9, with and without calls that run; then what of them is
// left in the daemon and at the servers behind it: npm run check:wrap
//   --rounds <n>   how many come (500)     --parallel <n>   at a time (4)
import { parseArgs } from "node:util";
import { brokenBy, runWrapRounds } from "../test/system/wrap-rounds.ts";

const { values } = parseArgs({ options: { rounds: { type: "string" }, parallel: { type: "string" } } });
const rounds = toCount("rounds", values.rounds ?? "500");
const say = (line) => process.stdout.write(`${line}\n`);
const startedAt = performance.now();
const report = await runWrapRounds({
  rounds,
  warmUp: Math.max(8, Math.floor(rounds / 10)),
  parallel: toCount("parallel", values.parallel ?? "4"),
  onProgress: say,
});
const { before, after, orphans, sessions, records, kinds, killed } = report;
const row = (what, was, is) => say(`${what.padEnd(34)}${String(was).padStart(8)}${String(is).padStart(8)}`);
const how = Object.entries(kinds).map(([kind, count]) => `${kind} ${count}`);
say(`\n${rounds} rounds in ${Math.round((performance.now() - startedAt) / 1000)} s, ${killed} ended by kill -9`);
say(`when they left: ${how.join(", ")}\n`);
row("", "before", "after");
row("servers that nobody has", 0, orphans.length);
row("servers on record", 0, records);
row("sessions at the server over HTTP", 0, sessions);
row("sockets of the daemon", before.sockets, after.sockets);
row("files of the daemon", before.fds, after.fds);
row("its heap after collecting, MB", before.heapMB.toFixed(1), after.heapMB.toFixed(1));
row("its memory, MB", before.rssMB.toFixed(0), after.rssMB.toFixed(0));
const broken = brokenBy(report, rounds);
for (const line of broken) say(`✗ ${line}`);
process.exit(broken.length === 0 ? 0 : 1);

function toCount(name, text) {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  process.stderr.write(`--${name} must be a positive whole number, not ${text}\n`);
  process.exit(2);
}
