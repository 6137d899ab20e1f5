import path from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { openStore, type Store } from "../../src/store/open.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { Bench, done, newTask } from "../store-suite/cases/bench.ts";

/** The rows of `local`, as the versions before kept every local user, in files of SQLite. */

const key = "local:the-home-of-ada";
const clock = new FakeClock();

async function open(file: string, owner?: { readonly key: string; readonly project?: string }): Promise<Store> {
  const store = await openStore(file, { clock, ...(owner !== undefined && { owner: () => owner }) });
  onTestFinished(() => store.close());
  return store;
}

/** A file as a version before has left it: schema 9, with a live and an ended task and a session of `local`. */
async function earlierFile(): Promise<string> {
  const file = path.join(temporaryFolder(), "tasks.db");
  const store = await openStore(file, { clock });
  await fill(store, "local");
  await store.close();
  const db = new Database(file);
  db.exec("drop table rewritten_callers; drop table taken_rows; drop table api_keys; pragma user_version = 9");
  db.close();
  return file;
}

async function fill(store: Store, caller: string): Promise<void> {
  const bench = new Bench(store, clock);
  await bench.make({ taskId: "live", caller, idempotencyKey: "once" });
  await bench.store.settle(await bench.begin({ taskId: "ended", caller }), done);
  await bench.make({ taskId: "elsewhere", caller, project: "another" });
  await bench.make({ taskId: "anonymous", caller: "anonymous" });
  const session = { sessionId: "s", caller: `home ${caller}`, greeting: "{}", silenceMs: 60_000 };
  await store.shared.sessions.keep(session, 10, "n");
}

/** A process of a version before: it has the file open, and reads and writes `local`. */
async function openEarlier(file: string): Promise<Store> {
  // Its own check of the schema is no part of this.
  return await open(file);
}

function rowsOf(file: string): readonly string[] {
  const db = new Database(file, { readonly: true });
  const rows = db.prepare("select task_id || ' ' || caller from tasks union all select caller from sessions").pluck();
  const found = (rows.all() as string[]).sort();
  db.close();
  return found;
}

const rewritten = ["anonymous anonymous", `elsewhere ${key}`, `ended ${key}`, `home ${key}`, `live ${key}`];

async function idsOf(store: Store, caller: string): Promise<readonly string[]> {
  const { tasks } = await store.list({ caller }, { limit: 10 });
  expect(tasks.filter((task) => task.caller !== caller)).toEqual([]);
  return tasks.map(({ taskId }) => taskId);
}

test("the first process that has the file of a home to itself rewrites its rows", async () => {
  const file = await earlierFile();
  const store = await open(file, { key });
  expect(rowsOf(file)).toEqual(rewritten);
  expect(await idsOf(store, key)).toEqual(["elsewhere", "ended", "live"]);
  expect(await idsOf(store, "local")).toEqual([]);
  expect(await store.get({ caller: key }, "ended")).toMatchObject({ status: "completed", caller: key });
  expect(await store.shared.sessions.find(`home ${key}`, "s")).toMatchObject({ sessionId: "s" });
  const again = await store.create(newTask(9, { caller: key, idempotencyKey: "once" }), {
    joinsEqual: false,
    maxLive: 9,
  });
  expect(again).toMatchObject({ kind: "repeated", task: { taskId: "live" } });
});

test("while a process of the version before has the file open, both see and use the same rows", async () => {
  const file = await earlierFile();
  const old = await openEarlier(file);
  expect(await idsOf(old, "local")).toContain("live");
  const store = await open(file, { key });
  expect(rowsOf(file)).toContain("live local");
  expect(await idsOf(store, key)).toEqual(["elsewhere", "ended", "live"]);
  expect(await store.get({ caller: key }, "live")).toMatchObject({ caller: key });
  expect(await store.shared.sessions.find(`home ${key}`, "s")).toMatchObject({ sessionId: "s" });

  // What the new one makes, the old one finds, and the other way round.
  const bench = new Bench(store, clock);
  await bench.make({ taskId: "made here", caller: key });
  await new Bench(old, clock).make({ taskId: "made there", caller: "local" });
  expect(await old.get({ caller: "local" }, "made here")).toMatchObject({ caller: "local" });
  expect(await store.get({ caller: key }, "made there")).toMatchObject({ caller: key });
  const shares = { full: [key], fullOfEndless: [], turns: [] };
  expect(await bench.claim({ shares }), "the turn of a caller who has enough").toMatchObject({ taskId: "anonymous" });
  expect(await bench.claim({ shares })).toBeUndefined();
  expect(await bench.claim()).toMatchObject({ taskId: "live", caller: key });
  expect(await store.cancel({ caller: key }, "made there", "enough")).toBe(true);
  expect(await old.get({ caller: "local" }, "made there")).toMatchObject({ status: "cancelled" });

  // Once it is gone the next one rewrites all of it.
  await old.close();
  await store.close();
  const next = await open(file, { key });
  expect(rowsOf(file)).toEqual([...rewritten, `made here ${key}`, `made there ${key}`].sort());
  expect(await idsOf(next, key)).toEqual(["made there", "made here", "elsewhere", "ended", "live"]);
});

test("what a process of the version before writes all the same is rewritten with the next start", async () => {
  const file = await earlierFile();
  await (await open(file, { key })).close();
  const db = new Database(file);
  db.exec(`
    update tasks set caller = 'local' where task_id = 'ended';
    insert into tasks select * from tasks where 0;
    update tasks set caller = 'local', idempotency_key = 'twice' where task_id = 'elsewhere';
    update tasks set idempotency_key = 'twice', project = 'another' where task_id = 'live'`);
  db.close();
  const store = await open(file, { key });
  expect(rowsOf(file)).toEqual(rewritten);
  // One key leads to one task.
  expect(await store.get({ caller: key }, "elsewhere")).toMatchObject({ idempotencyKey: undefined });
  expect(await store.get({ caller: key }, "live")).toMatchObject({ idempotencyKey: "twice" });
});

test("a new file is never taken for one of a version before, whoever else has it open", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  await open(file, { key });
  const second = await open(file, { key });
  await new Bench(second, clock).make({ taskId: "first", caller: key });
  expect(rowsOf(file)).toEqual([`first ${key}`]);
});

test("in a file outside the home the rows of `local` are nobody's", async () => {
  const file = await earlierFile();
  const store = await open(file);
  expect(await idsOf(store, key)).toEqual([]);
  expect(rowsOf(file)).toContain("live local");
});

test("of the file of an embedded server its project's local user gets the rows of that project", async () => {
  const file = await earlierFile();
  const store = await open(file, { key: "local:home", project: "home" });
  expect(await idsOf(store, "local:home")).toEqual(["ended", "live"]);
  expect(rowsOf(file)).toEqual([
    "anonymous anonymous",
    "elsewhere local",
    "ended local:home",
    "home local:home",
    "live local:home",
  ]);
  await store.close();
  const another = await open(file, { key: "local:another", project: "another" });
  expect(await idsOf(another, "local:another")).toEqual(["elsewhere"]);
});
