import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { CommandError } from "../../../src/errors.ts";
import { copyTasks } from "../../../src/store/copy-tasks.ts";
import { checkStore, openTransfer } from "../../../src/store/manage.ts";
import { openStore } from "../../../src/store/open.ts";
import { allTaskColumns, plainTables, type TransferTarget, toLine } from "../../../src/store/transfer.ts";
import { fillFile, largest } from "../../helpers/full-store.ts";
import { shareAmongTests, temporaryFolder } from "../../helpers/home.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../../helpers/postgres.ts";
import { newTask } from "../../store-suite/cases/bench.ts";

const last = Number.MAX_SAFE_INTEGER;
const onProgress = () => undefined;
const admin = adminOf(serverPort);
const fileHere = () => path.join(temporaryFolder(), "tasks.db");

/** A file with everything in it, which tests read and do not change. */
const full = shareAmongTests(async () => {
  const file = fileHere();
  await fillFile(file, { tasks: 250, largestBytes: largest });
  return file;
});

async function open(store: string, role: "source" | "target"): Promise<TransferTarget> {
  const side = await openTransfer(store, role);
  onTestFinished(() => side.close());
  return side;
}

/** All that a store keeps, in lines. */
async function linesOf(store: string): Promise<string[]> {
  const side = await open(store, "source");
  const tasks = (await side.read(0, last)).map(toLine);
  const tables = await Promise.all(plainTables.map((table) => side.readTable(table)));
  expect(tables.every((rows) => rows.length > 0)).toBe(true);
  return [...tasks, ...tables.flatMap((rows) => rows.map((row) => JSON.stringify(row)).sort())];
}

async function copy(source: string, target: string): Promise<{ tasks: number; written: number }> {
  const [from, to] = [await open(source, "source"), await open(target, "target")];
  await to.begin({ source: from.place, copier: "one" });
  return await copyTasks({ from, to, copier: "one", onProgress });
}

async function listOf(store: string): Promise<string[]> {
  const opened = await openStore(store);
  onTestFinished(() => opened.close());
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await opened.list({ caller: "ada" }, { limit: 100, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.tasks.map(({ taskId }) => taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return ids;
}

test("from SQLite to PostgreSQL and back nothing is lost, and nothing is otherwise", async () => {
  const source = await full();
  const before = await linesOf(source);
  const [database, back] = [urlOf(await serverPort()), fileHere()];
  expect(await copy(source, database)).toMatchObject({ tasks: 262, written: 262 });
  expect(await linesOf(database)).toEqual(before);
  await copy(database, back);
  expect(await linesOf(back)).toEqual(before);
  expect(await listOf(back)).toEqual(await listOf(source));
  expect(await listOf(database)).toEqual(await listOf(source));
  for (const store of [database, back]) expect((await checkStore(store)).problems).toEqual([]);
});

test("a copy goes on living: tasks are made, claimed with their steps, answered, and lost ones taken up", async () => {
  const [database, source] = [urlOf(await serverPort()), fileHere()];
  await fillFile(source);
  await copy(source, database);
  const store = await openStore(database);
  onTestFinished(() => store.close());
  const made = await store.create(newTask(9_000), { joinsEqual: false, maxLive: 100 });
  expect(made.kind).toBe("created");
  const { tasks } = await store.list({ caller: "ada" }, { limit: 1 });
  expect(tasks[0]?.taskId).toBe("task-9000");
  const before = await openStore(source);
  onTestFinished(() => before.close());
  expect(await store.shared.secret()).toBe(await before.shared.secret());
  expect(await store.shared.sessions.find("ada", "one")).toEqual(await before.shared.sessions.find("ada", "one"));
  const repeated = await store.create(newTask(9_001, { caller: "grace", idempotencyKey: "once" }), {
    joinsEqual: false,
    maxLive: 100,
  });
  expect(repeated.kind).toBe("repeated");
  expect([...(await store.steps("task-9")).keys()].sort()).toEqual(["another", "first"]);
  const lost = await store.interrupt();
  expect(lost).toContain("task-5");
  expect(await store.get({ caller: "ada" }, "task-5")).toMatchObject({ status: "queued", crashes: 1 });
});

describe("as long as a copy is not finished", () => {
  test.for(["SQLite", "PostgreSQL"])("nobody else opens the target: %s", async (kind) => {
    const target = kind === "SQLite" ? fileHere() : urlOf(await serverPort());
    const to = await open(target, "target");
    await to.begin({ source: "elsewhere", copier: "one" });
    await expect(openStore(target)).rejects.toThrow(
      /holds a copy that is not finished: run the same `meanwhile store copy` again/,
    );
    await expect(openTransfer(target, "source")).rejects.toThrow(/not finished/);
    expect((await checkStore(target)).problems).toEqual([
      "It holds an unfinished copy of elsewhere: run the same `meanwhile store copy` again.",
    ]);
    expect(await to.finish("one")).toBe(true);
    await (await openStore(target)).close();
  });

  test.for(["SQLite", "PostgreSQL"])("only the run that began last writes: %s", async (kind) => {
    const source = await full();
    const target = kind === "SQLite" ? fileHere() : urlOf(await serverPort());
    const [from, to] = [await open(source, "source"), await open(target, "target")];
    await to.begin({ source: from.place, copier: "one" });
    const tasks = await from.read(0, 5);
    expect(await to.write("one", { gone: [], tasks })).toBe(true);
    await to.begin({ source: from.place, copier: "two" });
    expect(await to.write("one", { gone: tasks.map(({ number }) => number), tasks: [] })).toBe(false);
    expect(await to.writeTable("one", plainTables[0], [])).toBe(false);
    expect(await to.finish("one")).toBe(false);
    expect((await to.read(0, last)).map(toLine)).toEqual(tasks.map(toLine));
  });

  test.for(["SQLite", "PostgreSQL"])(
    "what is there already is not written again, and what is no more goes: %s",
    async (kind) => {
      const source = fileHere();
      await fillFile(source);
      const target = kind === "SQLite" ? fileHere() : urlOf(await serverPort());
      const [from, to] = [await open(source, "source"), await open(target, "target")];
      await to.begin({ source: from.place, copier: "one" });
      await to.write("one", { gone: [], tasks: await from.read(0, 6) });
      const db = new Database(source);
      db.exec("update tasks set version = version + 1 where number = 3; delete from tasks where number = 4");
      db.close();
      expect(await copyTasks({ from, to, copier: "one", onProgress })).toMatchObject({ tasks: 11, written: 8 });
      expect(await linesOf(target)).toEqual(await linesOf(source));
    },
  );
});

test("a source that changes in the middle is noticed, and its target stays unfinished", async () => {
  const [source, target] = [fileHere(), fileHere()];
  await fillFile(source);
  const [from, to] = [await open(source, "source"), await open(target, "target")];
  await to.begin({ source: from.place, copier: "one" });
  const change = () => {
    const db = new Database(source);
    db.exec("update tasks set version = version + 1 where number = 3");
    db.close();
  };
  const copying = copyTasks({
    from,
    to,
    copier: "one",
    onProgress: ({ stage, done, total }) => stage === "copying" && done === total && change(),
  });
  await expect(copying).rejects.toThrow(CommandError);
  await expect(openStore(target)).rejects.toThrow(/not finished/);
  expect(await copyTasks({ from, to, copier: "one", onProgress })).toMatchObject({ written: 1 });
});

test("a page is never much larger than 4 MiB, unless one task is", async () => {
  const from = await open(await full(), "source");
  const to = await open(fileHere(), "target");
  await to.begin({ source: from.place, copier: "one" });
  const pages: number[] = [];
  const read = from.read.bind(from);
  from.read = async (after, upTo) => {
    const tasks = await read(after, upTo);
    pages.push(tasks.length);
    return tasks;
  };
  await copyTasks({ from, to, copier: "one", onProgress });
  expect(pages.slice(0, pages.length / 2)).toEqual([5, 1, 200, 56]);
});

test("rows that have lost what belongs to them are found, in both kinds of store", async () => {
  const source = fileHere();
  await fillFile(source);
  const schema = newSchema();
  const database = urlOf(await serverPort(), schema);
  await copy(source, database);
  const db = new Database(source);
  db.exec(
    "delete from inputs where number in (2, 3); pragma foreign_keys = off; insert into outcomes values (999, '{}')",
  );
  db.close();
  await (await admin()).query(
    `delete from ${schema}.outcomes where number = 2; insert into ${schema}.outcomes values (6, '{}')`,
  );
  expect((await checkStore(source)).problems).toEqual([
    "2 tasks have lost their input: restore a backup, or remove these tasks.",
    "1 inputs and outcomes belong to no task: restore a backup, or remove these tasks.",
  ]);
  expect((await checkStore(database)).problems).toEqual([
    "1 ended tasks have lost their outcome: restore a backup, or remove these tasks.",
    "1 live tasks have an outcome already: restore a backup, or remove these tasks.",
  ]);
});

/** Whose rows belong to a task, and what is about this database or its running nodes alone; a table that stands nowhere would be forgotten. */
const elsewhere = {
  withTasks: ["tasks", "inputs", "outcomes", "steps"],
  leftBehind: ["nodes", "workers", "letters", "sqlite_sequence", "meanwhile_schema", "rewritten_callers", "taken_rows"],
};

test("every table of both databases is copied, or known to stay behind", async () => {
  const [file, schema] = [fileHere(), newSchema()];
  await (await open(file, "target")).close();
  await (await open(urlOf(await serverPort(), schema), "target")).close();
  const db = new Database(file, { readonly: true });
  const here = db.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[];
  db.close();
  const { rows } = await (await admin()).query<{ name: string }>(
    "select table_name as name from information_schema.tables where table_schema = $1",
    [schema],
  );
  const known = [...elsewhere.withTasks, ...elsewhere.leftBehind, ...plainTables.map(({ name }) => name)];
  expect([...here, ...rows.map(({ name }) => name)].filter((name) => !known.includes(name))).toEqual([]);
});

test("every column of a task is copied, or made from others", async () => {
  const [file, schema] = [fileHere(), newSchema()];
  await (await open(file, "target")).close();
  await (await open(urlOf(await serverPort(), schema), "target")).close();
  const db = new Database(file, { readonly: true });
  const here = db.prepare("select name from pragma_table_info('tasks')").pluck().all() as string[];
  db.close();
  const { rows } = await (await admin()).query<{ name: string }>(
    "select column_name as name from information_schema.columns where table_schema = $1 and table_name = 'tasks'",
    [schema],
  );
  const made = ["bytes", "open_questions", "lapses_at", "claim_id"];
  const left = [...here, ...rows.map(({ name }) => name)].filter((name) => !allTaskColumns.includes(name));
  expect(left.filter((name) => !made.includes(name))).toEqual([]);
});
