import path from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { SharedWrites } from "../../src/store/sqlite/shared-writes.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { moving } from "../helpers/in-memory.ts";
import { Bench } from "../store-suite/cases/bench.ts";

function setUp() {
  const db = new Database(path.join(temporaryFolder(), "words.db"));
  onTestFinished(() => void db.close());
  db.exec("create table words (word text primary key)");
  const asked: boolean[] = [];
  const writes = new SharedWrites({
    ready: (isFull) => {
      asked.push(isFull);
      return db;
    },
    patiently: async (act) => act(),
  });
  const insert = db.prepare("insert into words values (?)");
  return {
    db,
    writes,
    /** For each transaction whether it had to be on disk. */
    asked,
    write: (word: string, isFull = false) => writes.write(isFull, () => insert.run(word).changes),
    words: () => db.prepare("select word from words order by word").pluck().all(),
  };
}

test("what is written in one turn is one transaction, as durable as the most careful of it asks", async () => {
  const { write, asked, words } = setUp();
  const taken = await Promise.all([write("a"), write("b", true), write("c")]);
  expect(taken).toEqual([1, 1, 1]);
  expect(asked).toEqual([true]);
  await write("d");
  expect(asked).toEqual([true, false]);
  expect(words()).toEqual(["a", "b", "c", "d"]);
});

test("nobody is answered before all of it is written", async () => {
  const { write, db } = setUp();
  const seen = write("a").then(() => db.prepare("select count(*) from words").pluck().get());
  const inTransaction = write("b").then(() => db.inTransaction);
  expect(await Promise.all([seen, inTransaction])).toEqual([2, false]);
});

test("one that fails is undone alone", async () => {
  const { write, writes, words, db } = setUp();
  const half = writes.write(false, () => {
    db.exec("insert into words values ('half')");
    throw new Error("No.");
  });
  const all = await Promise.allSettled([write("a"), half, write("a"), write("b")]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
  expect(words()).toEqual(["a", "b"]);
});

test("where one takes all down with it, each is tried by itself", async () => {
  const { write, writes, words, asked, db } = setUp();
  const fatal = writes.write(true, () => {
    if (db.inTransaction) db.exec("rollback");
    throw new Error("The disk is full.");
  });
  const all = await Promise.allSettled([write("a"), fatal, write("b")]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(words()).toEqual(["a", "b"]);
  expect(asked).toEqual([true, true, false, false]);
});

test("where a lock has kept all of them waiting, all are told, and none waits anew", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const clock = new FakeClock();
  const store = await openStore(file, { clock });
  onTestFinished(() => store.close());
  const other = new Database(file);
  other.exec("begin immediate");
  const bench = new Bench(store, clock);
  const startedAt = clock.monotonic();
  const all = Promise.allSettled(Array.from({ length: 20 }, () => bench.make()));
  const refused = (await moving(clock, all, 1_000)).filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(20);
  expect(clock.monotonic() - startedAt).toBeLessThan(60_000);
  other.close();
  expect((await moving(clock, bench.make())).status).toBe("queued");
});

test("a store that is closed writes first what was asked of it", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const clock = new FakeClock();
  const store = await openStore(file, { clock });
  const bench = new Bench(store, clock);
  const made = Promise.all([bench.make(), bench.make()]);
  await store.close();
  const again = await openStore(file, { clock });
  onTestFinished(() => again.close());
  expect((await again.list({ caller: "ada" }, { limit: 9 })).tasks).toHaveLength(2);
  expect(await made).toHaveLength(2);
});
