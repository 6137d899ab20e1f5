import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { silentLog } from "../../../src/log.ts";
import { openStore, type Store, shownStore } from "../../../src/store/open.ts";
import { parseAddress } from "../../../src/store/postgres/address.ts";
import { Database } from "../../../src/store/postgres/database.ts";
import { loadDriver } from "../../../src/store/postgres/driver.ts";
import { UnsettledClaims } from "../../../src/store/postgres/unsettled-claims.ts";
import type { Created } from "../../../src/task/store.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { openCutConnection } from "../../helpers/cut-connection.ts";
import { cleanUp } from "../../helpers/home.ts";
import { adminOf, newSchema, serverPort, startServer, testPassword, urlOf } from "../../helpers/postgres.ts";
import { inTime, openAt, refusal, relationsIn, unusable } from "../../helpers/postgres-bench.ts";
import { accepted, Bench, done, leaseMs, question } from "../../store-suite/cases/bench.ts";

// In the product the store that is opened loads it.
await loadDriver();

const admin = adminOf(serverPort);

describe("what cannot be opened says why, in one sentence", () => {
  test.each<[string, (port: number) => string, string]>([
    ["a wrong password", (port) => urlOf(port).replace(testPassword, "secret-but-wrong"), "the password or the user"],
    ["an unknown database", (port) => urlOf(port).replace("/postgres?", "/nowhere?"), "there is no such database"],
    ["a port where nothing answers", () => urlOf(1), "nothing answers at this host"],
    ["a server without TLS", (port) => `${urlOf(port)}&sslmode=require`, "the server takes no TLS"],
    [
      "a user who needs TLS",
      (port) => urlOf(port).replace("postgres:secret", "other:secret"),
      "the server demands TLS",
    ],
  ])("%s", async (_, toUrl, why) => {
    expect(await refusal(toUrl(await serverPort()))).toMatchObject(unusable(why));
  });

  test("an encoding that does not hold every text", async () => {
    const name = newSchema();
    await (await admin()).query(`create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`);
    const url = urlOf(await serverPort()).replace("/postgres?", `/${name}?`);
    expect(await refusal(url)).toMatchObject(unusable("it is encoded as SQL_ASCII"));
  });

  test("a database that may only be read, a user who may make nothing, and one who has no connection left", async () => {
    const client = await admin();
    const name = newSchema();
    await client.query(`create database ${name}`);
    await client.query(`alter database ${name} set default_transaction_read_only = on`);
    const url = urlOf(await serverPort());
    expect(await refusal(url.replace("/postgres?", `/${name}?`))).toMatchObject(
      unusable("its transactions may only read"),
    );
    for (const role of ["reader", "limited"])
      await client.query(`
        do $$ begin create role ${role} login password '${testPassword}'; exception when duplicate_object then null; end $$`);
    await client.query("alter role limited connection limit 0");
    const as = (role: string) => url.replace("//postgres:", `//${role}:`);
    expect(await refusal(as("reader"))).toMatchObject(unusable("its user may not do this"));
    expect(await refusal(as("limited"))).toMatchObject(unusable("the server has no connection left"));
  });

  test("a server that is too old", async () => {
    const { rows } = await (await admin()).query<{ major: string }>(
      "select current_setting('server_version_num')::int / 10000 as major",
    );
    // Its facts begin with its version, which is followed by the length of the next one.
    const [version, older] = [`${rows[0]?.major}\0\0\0\x04UTF8`, "13\0\0\0\x04UTF8"];
    const way = await openCutConnection(await serverPort(), (said) =>
      Buffer.from(said.toString("latin1").replace(version, older), "latin1"),
    );
    const why = "its server is PostgreSQL 13; 14 or newer is needed\\.$";
    expect(await refusal(urlOf(way.port))).toMatchObject(unusable(why));
  });

  test("a schema that a newer version has changed", async () => {
    const schema = newSchema();
    const url = urlOf(await serverPort(), schema);
    await (await openStore(url)).close();
    await (await admin()).query(`update ${schema}.meanwhile_schema set version = 99`);
    expect(await refusal(url)).toMatchObject({
      code: "SCHEMA_NEWER",
      message: expect.stringMatching(
        /^The schema t_\w+ of 127.* \(schema 99, this one knows \d+\); update .* another database\.$/,
      ),
    });
  });

  test("somebody else's tables, which stay as they are", async () => {
    const schema = newSchema();
    const client = await admin();
    await client.query(`create schema ${schema}; create table ${schema}.tasks (theirs text)`);
    expect(await refusal(urlOf(await serverPort(), schema))).toMatchObject(
      unusable(`its schema ${schema} has a table tasks of another program`),
    );
    expect(await relationsIn(client, schema)).toEqual(["tasks"]);
  });

  test.each([
    ["mysql://root:secret@db/tasks", "Tasks are not kept in databases of the kind mysql"],
    ["postgres://ada:secret/#@host/x?", "signs such as @, / and #"],
    ["postgres://ada:secret@host/x?schema=Bad-One", "`schema` is a name of up to 48"],
    ["postgres://ada:secret@host/x?pool=0", "`pool` is a number of connections"],
    ["postgres://ada:secret@host/x?sslmode=maybe", "`sslmode` is one of"],
    ["postgres://ada:secret@host/x?ssl=1", "`ssl` is no parameter of it"],
  ])("a URL that is none: %s", async (url, why) => {
    const error = await refusal(url);
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", message: expect.stringContaining(why) });
  });
});

test("A store is shown without its user and password.", () => {
  expect(shownStore("postgres://ada:secret@db:5433/tasks?schema=x")).toBe("postgres://db:5433/tasks");
  expect(shownStore("/home/ada/tasks.db")).toBe("/home/ada/tasks.db");
});

describe("a schema is brought up to date", () => {
  test("by many nodes at once", async () => {
    const url = urlOf(await serverPort());
    const stores = await Promise.all(Array.from({ length: 5 }, () => openStore(url)));
    const [one, other] = stores.map((store) => new Bench(store, new FakeClock()));
    const { taskId } = (await one?.make()) ?? { taskId: "" };
    expect((await other?.read(taskId))?.status).toBe("queued");
    await Promise.all(stores.map((store) => store.close()));
  });

  test("whole or not at all, and by the next try after one that failed half way", async () => {
    const schema = newSchema();
    const url = urlOf(await serverPort(), schema);
    const client = await admin();
    await client.query(`create schema ${schema};
      create function ${schema}.fits(text, text) returns boolean language sql as 'select true'`);
    await expect(openStore(url)).rejects.toThrow("already exists");
    expect(await relationsIn(client, schema)).toEqual([]);
    await client.query(`drop function ${schema}.fits(text, text)`);
    const bench = await openAt(url);
    expect((await bench.make()).status).toBe("queued");
  });

  test("from where it was when the connection broke in the middle of a step", async () => {
    const way = await openCutConnection(await serverPort());
    const schema = newSchema();
    const url = urlOf(way.port, schema);
    const client = await admin();
    for (const step of [1, 2]) {
      way.cutOffAt(`meanwhile_schema set version = ${step}`);
      expect(await refusal(url)).toMatchObject(unusable("the connection was lost and cannot be made again"));
      way.heal();
      // What of it was done is undone; the steps before it stay.
      await vi.waitFor(async () => {
        const { rows } = await client.query("select 1 from pg_namespace where nspname = $1", [schema]);
        expect(rows).toHaveLength(step - 1);
      });
    }
    const { rows } = await client.query(`select version from ${schema}.meanwhile_schema`);
    expect([way.lost, rows]).toEqual([2, [{ version: 1 }]]);
    expect((await (await openAt(url)).make()).status).toBe("queued");
  });
});

describe("many nodes at once", () => {
  async function createOnAll(options: { joinsEqual: boolean; maxLive: number }): Promise<string[]> {
    const url = urlOf(await serverPort());
    const nodes = [await openAt(url), await openAt(url), await openAt(url)];
    const made = await Promise.all(
      Array.from({ length: 30 }, (_, n) => nodes[n % 3]?.create({ taskId: `t${n}`, digest: "same" }, options)),
    );
    return (made as Created[]).map(({ kind }) => kind);
  }

  test("a limit holds", async () => {
    const kinds = await createOnAll({ joinsEqual: false, maxLive: 5 });
    expect([kinds.filter((kind) => kind === "created").length, new Set(kinds).size]).toEqual([5, 2]);
  });

  test("equal calls are one task", async () => {
    const kinds = await createOnAll({ joinsEqual: true, maxLive: 5 });
    expect([kinds.filter((kind) => kind === "created").length, new Set(kinds).size]).toEqual([1, 2]);
  });
});

test("Leases are kept while the event loop is blocked.", async () => {
  const bench = await openAt(urlOf(await serverPort()));
  const claim = await bench.begin();
  const until = async () => ((await bench.read(claim.taskId)) as { lease?: { until: number } }).lease?.until ?? 0;
  const before = await until();
  const stop = bench.store.keepLeases("w1", leaseMs, 20);
  await vi.waitFor(async () => expect(await until()).toBeGreaterThan(before), { timeout: 30_000 });
  const unblocked = await until();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  await stop();
  expect(await until()).toBeGreaterThan(unblocked + 200);
});

describe("an answer that is lost after the statement was carried out", () => {
  /** A bench whose next statement of a name loses its answer. */
  async function cut() {
    const way = await openCutConnection(await serverPort());
    const bench = await openAt(urlOf(way.port));
    return { bench, way };
  }

  test("create: there is one task, and it was made", async () => {
    const { bench, way } = await cut();
    way.loseAnswerTo("create");
    expect((await bench.create({ taskId: "t" })).kind).toBe("created");
    expect([way.lost, (await bench.store.list(bench.scope(), { limit: 9 })).tasks.length]).toEqual([1, 1]);
  });

  test("claim: the worker has the task that it took, and no other", async () => {
    const { bench, way } = await cut();
    await bench.make({ taskId: "first" });
    await bench.make({ taskId: "second" });
    way.loseAnswerTo("claim");
    expect(await bench.claim()).toMatchObject({ taskId: "first", fence: 1 });
    expect([way.lost, (await bench.read("second")).status]).toEqual([1, "queued"]);
    expect(await bench.claim()).toMatchObject({ taskId: "second", fence: 1 });
    expect(await bench.read("first")).toMatchObject({ status: "working", fence: 1 });
  });

  test("settle, cancel, retryLater, giveBack: it was so, once", async () => {
    const { bench, way } = await cut();
    const verbs: Record<string, (store: Store, claim: { taskId: string; fence: number }) => Promise<boolean>> = {
      settle: (store, claim) => store.settle(claim, done),
      cancel: (store, claim) => store.cancel(bench.scope(), claim.taskId, "No longer needed."),
      retryLater: (store, claim) => store.retryLater(claim, 60_000, "Again."),
      giveBack: (store, claim) => store.giveBack(claim),
    };
    for (const [verb, act] of Object.entries(verbs)) {
      const claim = await bench.begin();
      const { version } = await bench.read(claim.taskId);
      way.loseAnswerTo(verb);
      expect(await act(bench.store as Store, claim), verb).toBe(true);
      expect((await bench.read(claim.taskId)).version, verb).toBe(version + 1);
    }
    expect(way.lost).toBe(4);
  });

  test("ask and answer: one question, one answer", async () => {
    const { bench, way } = await cut();
    const claim = await bench.begin();
    way.loseAnswerTo("writeQuestions");
    expect((await bench.store.ask(claim, question))?.key).toBe("q1");
    way.loseAnswerTo("writeQuestions");
    expect(await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted)).toBe(true);
    const { questions, status } = await bench.read(claim.taskId);
    expect([way.lost, questions.length, questions[0]?.answer, status]).toEqual([2, 1, accepted, "working"]);
  });

  test("handOut, forget and keepStep: done, and known to be", async () => {
    const { bench, way } = await cut();
    const [kept, gone] = [await bench.journal({ taskId: "kept" }), await bench.journal({ taskId: "gone" })];
    const terms = { reason: "slow", ttlMs: 1_000, rules: { isSafe: true, maxAttempts: 1, backoffMs: 0 } };
    way.loseAnswerTo("handOut");
    expect(await bench.store.handOut(kept, terms)).toBe(true);
    way.loseAnswerTo("forget");
    expect(await bench.store.forget(gone)).toBe(true);
    way.loseAnswerTo("keepStep");
    expect(await bench.store.keepStep(kept, "fetch", "1")).toBe(true);
    expect([way.lost, await bench.store.handOut(gone, terms), (await bench.read("kept")).isCall]).toEqual([
      3,
      false,
      false,
    ]);
  });
});

test("Of tasks that go in one statement whose answer was lost each is there once, and so is what they came to.", async () => {
  const way = await openCutConnection(await serverPort());
  const schema = newSchema();
  const bench = await openAt(urlOf(way.port, schema));
  await bench.begin({ taskId: "before" });
  const names = Array.from({ length: 12 }, (_, n) => `t${n}`);
  const claim = { worker: "w1", leaseMs };
  way.loseAnswerTo("create");
  const made = await Promise.all(names.map((taskId) => bench.create({ taskId }, { claim })));
  expect(made.map(({ kind }) => kind)).toEqual(names.map(() => "created"));
  way.loseAnswerTo("settle");
  const settled = await Promise.all(names.map((taskId) => bench.store.settle({ taskId, fence: 1 }, done)));
  expect([way.lost, new Set(settled)]).toEqual([2, new Set([true])]);
  const { rows } = await (await admin()).query<{ tasks: number; outcomes: number }>(
    `select (select count(*)::int from ${schema}.tasks where status = 'completed') as tasks, (select count(*)::int from ${schema}.outcomes) as outcomes`,
  );
  expect(rows).toEqual([{ tasks: 12, outcomes: 12 }]);
});

test("Tasks that are asked for at once are read in one statement, but for those that are large.", async () => {
  const way = await openCutConnection(await serverPort());
  const bench = await openAt(urlOf(way.port));
  const names = Array.from({ length: 12 }, (_, n) => `t${n}`);
  const make = (taskId: string, length: number) => bench.create({ taskId, input: { text: "x".repeat(length) } });
  const large = await make("t0", 70_000);
  const made = [large, ...(await Promise.all(names.slice(1).map((taskId) => make(taskId, 10))))];
  const tasks = await Promise.all([...names, "none"].map((taskId) => bench.store.get(bench.scope(), taskId)));
  expect(tasks).toEqual([...made.map((created) => "task" in created && created.task), undefined]);
  expect([way.sent("getSome"), way.sent("get"), way.sent("create")]).toEqual([1, 1, 2]);
  way.loseAnswerTo("getSome");
  expect(await Promise.all(names.map((taskId) => bench.store.get(bench.scope(), taskId)))).toEqual(tasks.slice(0, -1));
  expect(way.lost).toBe(1);
});

test("One of them that cannot be written does not keep the others from it.", async () => {
  const bench = await openAt(urlOf(await serverPort()));
  await bench.create({ taskId: "there" });
  const made = await Promise.allSettled(["a", "there", "b"].map((taskId) => bench.create({ taskId })));
  expect(made.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const { tasks } = await bench.store.list(bench.scope(), { limit: 9 });
  expect(tasks.map(({ taskId }) => taskId).toSorted()).toEqual(["a", "b", "there"]);
});

describe("a claim of which its worker never heard", () => {
  /** A bench whose time is moved by the test, and the way to its server. */
  async function cut() {
    const way = await openCutConnection(await serverPort());
    const schema = newSchema();
    const bench = await openAt(urlOf(way.port, schema), new FakeClock());
    const other = await openAt(urlOf(await serverPort(), schema));
    return { bench, other, way, schema };
  }

  /** The worker has claimed a task, was cut off, gave up, and can be reached again. */
  async function claimInVain({ bench, other, way }: Awaited<ReturnType<typeof cut>>): Promise<void> {
    way.cutOffAt("claim");
    await expect(inTime(bench, bench.claim())).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    way.heal();
    expect([way.lost, (await other.read("t")).status]).toEqual([1, "working"]);
  }

  test("is given back before its next one, which may take the same task; what it knows of stays its own", async () => {
    const nodes = await cut();
    const { bench } = nodes;
    const running = await bench.begin({ taskId: "running" });
    await bench.make({ taskId: "t" });
    await claimInVain(nodes);
    expect(await inTime(bench, bench.claim())).toMatchObject({ taskId: "t", fence: 2, attempts: 1 });
    bench.clock.advance(60_000);
    expect(await inTime(bench, bench.claim())).toBeUndefined();
    for (const taskId of ["t", "running"]) expect((await bench.read(taskId)).status, taskId).toBe("working");
    expect(await inTime(bench, bench.store.settle(running, done))).toBe(true);
  });

  test("is given back while it has no room for another, and others hear of work", async () => {
    const nodes = await cut();
    const { bench, other } = nodes;
    await bench.make({ taskId: "t" });
    await claimInVain(nodes);
    const heard: (string | undefined)[] = [];
    const stops = [other.store.onChange((taskId) => heard.push(taskId)), other.store.onWork(() => heard.push("work"))];
    expect(await inTime(bench, bench.store.interrupt())).toEqual([]);
    await vi.waitFor(() => expect(heard).toEqual(expect.arrayContaining(["t", "work"])), { timeout: 30_000 });
    for (const stop of stops) stop();
    expect(await other.claim({ worker: "w2" })).toMatchObject({ taskId: "t", attempts: 1, crashes: 0 });
  });

  test("is removed where the task was to be made with it, and who wanted that was told that it was not", async () => {
    const { bench, other, way } = await cut();
    const make = (taskId: string) => bench.create({ taskId }, { claim: { worker: "w1", leaseMs } });
    await make("first");
    way.cutOffAt("create");
    await expect(inTime(bench, make("t"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    way.heal();
    expect([way.lost, (await other.read("t")).status]).toEqual([1, "working"]);
    await inTime(bench, make("second"));
    const { tasks } = await other.store.list(bench.scope(), { limit: 9 });
    expect(tasks.map(({ taskId }) => taskId)).toEqual(["second", "first"]);
  });

  test("is given back where somebody else was told of the task meanwhile: it has been promised", async () => {
    const { bench, other, way } = await cut();
    const make = (of: typeof bench, taskId: string) =>
      of.create({ taskId, digest: "equal" }, { claim: { worker: "w1", leaseMs }, joinsEqual: true });
    way.cutOffAt("create");
    await expect(inTime(bench, make(bench, "t"))).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(await make(other, "another")).toMatchObject({ kind: "joined", task: { taskId: "t", status: "working" } });
    way.heal();
    await inTime(bench, bench.store.interrupt());
    expect(await other.claim({ worker: "w2" })).toMatchObject({ taskId: "t", attempts: 1, crashes: 0 });
  });

  test("stays what it is where its task was cancelled meanwhile", async () => {
    const nodes = await cut();
    const { bench, other } = nodes;
    await bench.make({ taskId: "t" });
    await claimInVain(nodes);
    await other.store.cancel(other.scope(), "t", "No longer needed.");
    expect(await inTime(bench, bench.claim())).toBeUndefined();
    expect((await other.read("t")).status).toBe("cancelled");
  });

  test("is given back also when it reaches the server long after another one was answered", async () => {
    const { bench, other, way } = await cut();
    await bench.make({ taskId: "first" });
    const arrive = way.delay("claim");
    expect(await inTime(bench, bench.claim())).toMatchObject({ taskId: "first", fence: 1 });
    await bench.make({ taskId: "t" });
    arrive();
    await vi.waitFor(async () => expect((await other.read("t")).status).toBe("working"), { timeout: 30_000 });
    bench.clock.advance(60_000);
    expect(await inTime(bench, bench.claim())).toMatchObject({ taskId: "t", fence: 2, attempts: 1 });
    expect(await other.read("first")).toMatchObject({ status: "working", fence: 1 });
  });
});

test("What was made and claimed for somebody who was told that it was not is removed; with a key it waits for him.", async () => {
  const schema = newSchema();
  const url = urlOf(await serverPort(), schema);
  const bench = await openAt(url);
  const claim = { worker: "w1", leaseMs };
  await bench.create({ taskId: "plain" }, { claim });
  await bench.create({ taskId: "keyed", idempotencyKey: "k" }, { claim });
  await bench.journal({ taskId: "call" });
  await bench.create({ taskId: "known" }, { claim });
  const { rows } = await (await admin()).query<{ claim_id: string }>(
    `select claim_id from ${schema}.tasks where task_id <> 'known'`,
  );
  const database = new Database(parseAddress(url), bench.clock, silentLog);
  cleanUp(() => database.close());
  const unsettled = new UnsettledClaims(database, bench.clock);
  unsettled.add(
    "w1",
    rows.map((row) => row.claim_id),
    true,
  );
  const { released, forgotten } = await unsettled.settle();
  expect([released, forgotten.toSorted()]).toEqual([["keyed"], ["call", "plain"]]);
  const { tasks } = await bench.store.list(bench.scope(), { limit: 9, withCalls: true });
  expect(tasks.map(({ taskId, status }) => [taskId, status])).toEqual([
    ["known", "working"],
    ["keyed", "queued"],
  ]);
  bench.clock.advance(60_000);
  expect(await unsettled.settle()).toEqual({ released: [], forgotten: [] });
});

test("A write whose connection is ended in the middle is written once it can be.", async () => {
  const schema = newSchema();
  const bench = await openAt(urlOf(await serverPort(), schema));
  const claim = await bench.begin();
  const client = await admin();
  await client.query("begin");
  await client.query(`select 1 from ${schema}.tasks for update`);
  const settled = bench.store.settle(claim, done);
  await vi.waitFor(
    async () => {
      // Within a transaction a second look would show what the first one has.
      await client.query("select pg_stat_clear_snapshot()");
      const ended = await client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' and query like $1",
        [`%${schema}%`],
      );
      expect(ended.rowCount).toBe(1);
    },
    { timeout: 30_000 },
  );
  await client.query("rollback");
  expect(await settled).toBe(true);
  expect((await bench.read(claim.taskId)).status).toBe("completed");
});

test("A full disk is told in one sentence, undoes what it met, and what ran goes on once there is room.", async () => {
  const schema = newSchema();
  const bench = await openAt(urlOf(await serverPort(), schema));
  const claim = await bench.begin({ taskId: "running" });
  const client = await admin();
  await client.query(`
    create function ${schema}.full() returns trigger language plpgsql as $$ begin
      raise exception using errcode = '53100', message = 'could not extend file: No space left on device';
    end $$`);
  for (const table of ["tasks", "outcomes"])
    await client.query(
      `create trigger full_${table} before insert on ${schema}.${table} for each row execute function ${schema}.full()`,
    );
  const full = unusable("the server's disk is full; make room, running tasks then go on\\.$");
  await expect(bench.create({ taskId: "new" })).rejects.toMatchObject(full);
  await expect(bench.store.settle(claim, done)).rejects.toMatchObject(full);
  expect((await bench.read("running")).status).toBe("working");
  await client.query(`drop function ${schema}.full() cascade`);
  expect(await bench.store.settle(claim, done)).toBe(true);
  expect((await bench.create({ taskId: "new" })).kind).toBe("created");
});

test("Who waits hears of changes on other nodes after the connection that listens was lost.", async () => {
  const schema = newSchema();
  const url = urlOf(await serverPort(), schema);
  const [one, other] = [await openAt(url), await openAt(url)];
  const heard: (string | undefined)[] = [];
  const stop = one.store.onChange((taskId) => heard.push(taskId));
  await other.make({ taskId: "before" });
  await vi.waitFor(() => expect(heard).toContain("before"), { timeout: 30_000 });
  const lost = await (await admin()).query("select pg_terminate_backend(pid) from pg_stat_activity where query = $1", [
    `listen "meanwhile_${schema}"`,
  ]);
  expect(lost.rowCount).toBe(2);
  await vi.waitFor(
    async () => {
      await other.make({ taskId: `after ${heard.length} ${systemClock.monotonic()}` });
      expect(heard.some((taskId) => taskId?.startsWith("after"))).toBe(true);
    },
    { timeout: 30_000 },
  );
  stop();
});

test("Nothing that was acknowledged is lost, and nothing refused, while the server restarts as after a crash.", async () => {
  // Where another user gets to: it does not run as root.
  const folder = path.join(tmpdir(), `meanwhile-${newSchema()}`);
  const { port, pid } = await startServer(folder, process.pid);
  cleanUp(() => process.kill(pid, "SIGTERM"));
  const bench = await openAt(urlOf(port));
  let isRestarting = false;
  const work = async (n: number) => {
    const claim = await bench.begin({ taskId: `t${n}` });
    if (n === 20 && !isRestarting) isRestarting = process.kill(pid, "SIGUSR2");
    return await bench.store.settle(claim, { ...done, durationMs: n });
  };
  const settled: boolean[] = [];
  for (let n = 0; n < 60; n += 4) settled.push(...(await Promise.all([n, n + 1, n + 2, n + 3].map(work))));
  expect(settled).toEqual(Array.from({ length: 60 }, () => true));
  const { tasks } = await bench.store.list(bench.scope(), { limit: 100 });
  expect(tasks.map(({ status, fence, version }) => [status, fence, version])).toEqual(
    Array.from({ length: 60 }, () => ["completed", 1, 3]),
  );
});
