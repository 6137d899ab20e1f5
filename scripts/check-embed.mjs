// Lets the official conformance suite judge servers of SDK v1, SDK v2 and the SDK's own server-everything that were
// wrapped by durable(), as one instance and as a factory, beside what their SDK serves itself: `npm run check:embed`.
// Exits non-zero when a wrapped one fails what the other passes, or misses one of the 44 checks of tasks.
import path from "node:path";
import { judge } from "./conformance.mjs";

const app = path.resolve(import.meta.dirname, "../test/fixtures/embed/suite-app.ts");
const servers = ["v1", "v2", "everything"];

/** One server of the fixture's, served as it says: "plain", "one" or "factory". */
export async function judgeEmbedded(server, how, requirements) {
  return await judge({ words: [app, server, how] }, ["--requirements", requirements]);
}

/** What a wrapped server fails, or leaves out, of what the same server passes when its SDK serves it. */
export function lostBy(wrapped, plain) {
  return plain.scenarios.flatMap(({ name, passed, failures }) => {
    const other = wrapped.scenarios.find((scenario) => scenario.name === name);
    const lost = (other?.failures ?? []).filter((id) => !failures.includes(id)).map((id) => `${name}: ${id}`);
    return lost.length === 0 && (other?.passed ?? 0) < passed ? [`${name}: fewer checks`] : lost;
  });
}

/** The checks of tasks that a server has passed. */
export function tasksPassedBy({ scenarios }) {
  return scenarios.filter(({ name }) => name.startsWith("tasks-")).reduce((sum, { passed }) => sum + passed, 0);
}

async function main() {
  const say = (line) => process.stdout.write(`${line}\n`);
  for (const server of servers) {
    const plain = await judgeEmbedded(server, "plain", "2025-11-25");
    say(`${server} by its SDK, 2025-11-25: ${plain.passed} passed, ${plain.failed} failed`);
    for (const how of ["one", "factory"]) {
      const older = await judgeEmbedded(server, how, "2025-11-25");
      const lost = lostBy(older, plain);
      say(
        `${server} wrapped (${how}), 2025-11-25: ${older.passed} passed, ${older.failed} failed, ${lost.length} lost`,
      );
      const newer = await judgeEmbedded(server, how, "2026-07-28");
      const tasks = tasksPassedBy(newer);
      say(
        `${server} wrapped (${how}), 2026-07-28: ${newer.passed} passed, ${newer.failed} failed, tasks ${tasks} of 44`,
      );
      for (const { name, failures } of newer.scenarios) for (const id of failures) say(`  failed ${name}: ${id}`);
      for (const line of lost) say(`  lost ${line}`);
      if (lost.length > 0 || tasks !== 44) process.exitCode = 1;
    }
  }
}

if (process.argv[1] === import.meta.filename) await main();
