// What a file with so many ended tasks costs whoever reads it, writes to it and clears it up.
import { fork } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { openStore } from "../../src/store/open.ts";
import { toCursor } from "../../src/store/page-cursor.ts";
import { liveStatuses } from "../../src/task/task.ts";
import { watchOver } from "./children.mjs";
import { newTask, project, text } from "./engine.mjs";
import { loadEnded } from "./load.mjs";

const caller = "caller 0";
const outcome = { ending: "completed", data: { text: "y".repeat(200) }, messages: [], log: [], durationMs: 1 };

/** Nine of ten tasks are one caller's; half of all have expired. Gives p50 and p99 in µs of each act, and what clearing up held. */
export async function measureGrowth(file, { count, asks }) {
  await (await openStore(file)).close();
  const theirs = Math.ceil(count / 10);
  loadEnded(file, { count: theirs, callers: 100, expired: theirs / 2 });
  const own = count - theirs;
  loadEnded(file, { count: own, callers: 1, expired: Math.floor(own / 2) });
  const store = await openStore(file);
  const page = await store.list({ caller }, { limit: 50 });
  const ids = page.tasks.map(({ taskId }) => taskId);
  const middle = toCursor(caller, Math.floor(count * 0.9));
  const rows = {};
  const time = async (name, act) => {
    rows[name] = await timed(asks, act);
  };
  await time("get", (turn) => store.get({ caller }, ids[turn % ids.length]));
  await time("list, first page of 50", () => store.list({ caller }, { limit: 50 }));
  await time("list, page in the middle", () => store.list({ caller }, { limit: 50, cursor: middle }));
  const none = async (statuses) => {
    const { tasks } = await store.list({ caller }, { limit: 50, project, statuses, withCalls: true });
    if (tasks.length > 0) throw new Error(`a status that nothing has was found ${tasks.length} times`);
  };
  await time("list of live tasks, none there", () => none(liveStatuses));
  await time("list of failed tasks, none there", () => none(["failed"]));
  const claims = [];
  await time("create", () => store.create(newTask("busy"), { joinsEqual: false, maxLive: 1e9 }));
  await time("claim", async () => claims.push(await store.claim({ project, worker: "w", leaseMs: 600_000 })));
  await time("settle", () => store.settle(claims.pop(), outcome));
  await time("claim, nothing there", () => store.claim({ project, worker: "w", leaseMs: 600_000 }));
  const bytesBefore = statSync(file).size;
  const idle = {
    ...(await clearUp(file, () => new Promise((r) => setTimeout(r, asks * 5)))),
    longestSyncMs: longestInsert(`${file}.bare`, asks),
  };
  const removals = {
    sweep: await clearUp(file, () => store.sweep()),
    prune: await clearUp(file, () => store.prune({ caller })),
  };
  await store.sweep();
  await store.close();
  return { rows, removals, idle, fileBytes: [bytesBefore, statSync(file).size] };
}

/** What the disk itself makes a writer wait for, at the worst. */
function longestInsert(file, times) {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("create table rows (id text primary key, body text not null) strict");
  const insert = db.prepare("insert into rows (id, body) values (?, ?)");
  let longestMs = 0;
  for (let turn = 0; turn < times; turn++) {
    const startedAt = performance.now();
    insert.run(crypto.randomUUID(), text);
    longestMs = Math.max(longestMs, performance.now() - startedAt);
  }
  db.close();
  return longestMs;
}

async function timed(times, act) {
  const taken = [];
  for (let turn = 0; turn < times; turn++) {
    const startedAt = performance.now();
    await act(turn);
    taken.push((performance.now() - startedAt) * 1_000);
  }
  taken.sort((a, b) => a - b);
  return { p50: taken[Math.floor(times / 2)], p99: taken[Math.floor(times * 0.99)] };
}

/** Removes, while another process asks for the lock and this one's event loop is watched. */
async function clearUp(file, remove) {
  const probe = fork(fileURLToPath(new URL("lock-probe.mjs", import.meta.url)), [file], {
    stdio: ["ignore", 2, 2, "ipc"],
  });
  const ended = watchOver(probe, 600_000);
  await once(probe, "message");
  let logBytes = 0;
  let longestBlockMs = 0;
  let lastTurn = performance.now();
  const watch = setInterval(() => {
    logBytes = Math.max(logBytes, statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0);
    longestBlockMs = Math.max(longestBlockMs, performance.now() - lastTurn);
    lastTurn = performance.now();
  }, 5);
  const startedAt = performance.now();
  const removed = await remove();
  const tookMs = performance.now() - startedAt;
  clearInterval(watch);
  probe.send("stop");
  const [{ longestMs }] = await once(probe, "message");
  probe.disconnect();
  await ended;
  return { removed, tookMs, longestLockMs: longestMs, longestBlockMs, logBytes };
}
