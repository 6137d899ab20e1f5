import Database from "better-sqlite3";
import { systemClock } from "../../src/clock.ts";
import { openStore } from "../../src/store/open.ts";
import type { FakeClock } from "../../src/testing/fake-clock.ts";
import { accepted, Bench, done as ended, makeOneOfEach, newTask, question } from "../store-suite/cases/bench.ts";

/** As large as a result may be. */
export const largest = 10 * 1024 * 1024;
/** What one database takes and another does not. */
const odd = "nul \u0000, half a pair \ud800, the mark \u001a0000, 🙂";

/** A SQLite file with a task of every kind, some of which nobody would make; nobody works on any of them any more. */
export async function fillFile(file: string, more: { tasks?: number; largestBytes?: number } = {}): Promise<void> {
  const store = await openStore(file);
  const bench = new Bench(store, systemClock as unknown as FakeClock);
  await makeOneOfEach(bench);
  const large = await bench.begin({ input: { text: odd } });
  await store.settle(large, { ...ended, ending: "completed", data: { text: "x".repeat(more.largestBytes ?? 1_000) } });
  const asking = await bench.begin({ progressToken: 7, rules: { isSafe: false, maxAttempts: 1, backoffMs: 0 } });
  await store.ask(asking, { ...question, message: odd, limitMs: 60_000 });
  const answered = await store.ask(asking, question);
  await store.answer(bench.scope(), asking.taskId, answered?.key ?? "", accepted);
  const stepping = await bench.begin({ progressToken: "7", environment: { NAME: odd, [odd]: "mark" } });
  await store.keepStep(stepping, "first", JSON.stringify({ odd }));
  await store.keepStep(stepping, "another", "null");
  await store.report(stepping, { progress: { done: 3, total: 12, message: odd } as never, statusMessage: odd });
  await store.retryLater(stepping, 5_000, "the network was away");
  await bench.make({ caller: "grace", idempotencyKey: "once", estimateMs: 0.1 + 0.2, isProven: true, isEndless: true });
  await bench.make({ origin: { door: "terminal", folder: undefined, client: { name: odd } as never } });
  const expired = await bench.begin({ idempotencyKey: odd, ttlMs: 1 });
  await store.settle(expired, ended);
  await bench.journal({ idempotencyKey: "of a call" });
  await store.recordDurations([
    { command: "text_count", kind: "time", bucket: 12, count: 3 },
    { command: odd, kind: "scale", bucket: -4, count: 1 },
  ]);
  await store.shared.secret();
  await store.shared.useOnce(odd, 60_000);
  const { sessions } = store.shared;
  for (const sessionId of ["one", odd]) {
    await sessions.keep(
      { sessionId, caller: "ada", greeting: JSON.stringify({ odd }), silenceMs: 60_000 } as never,
      10,
      "node",
    );
    const notes = { level: "debug", "stream:1": { node: "node", since: 1 } };
    await sessions.note(notes as never, { sessionId, from: "node", text: odd });
  }
  const { keys } = store.shared;
  for (const [at, name] of ["ci", odd].entries())
    await keys.add({
      ...{ id: `key-${at}`, project: "home", name, hash: `hash of ${name}` },
      ...{ scopes: ["meanwhile:call", odd], commands: [odd], ...(at === 0 && { expiresInMs: 60_000 }) },
    });
  await keys.rotate("home", odd, { hash: "second", overlapMs: 60_000 });
  await keys.noteUse("home", "key-0");
  const many = Array.from({ length: more.tasks ?? 0 }, (_, at) => newTask(1_000 + at));
  await Promise.all(many.map((task) => store.create(task, { joinsEqual: false, maxLive: 10_000 })));
  await store.prune({ caller: "nobody" });
  await store.close();
  const db = new Database(file);
  db.exec("update tasks set lease_until = created_at where worker is not null");
  // Numbers of tasks that are gone stay free.
  db.exec("delete from tasks where task_id = 'task-1'");
  db.close();
}
