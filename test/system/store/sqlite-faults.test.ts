import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { type Clock, systemClock } from "../../../src/clock.ts";
import { RuntimeError } from "../../../src/errors.ts";
import { openStore, type Store } from "../../../src/store/open.ts";
import { isAtLeast, toRuntimeError } from "../../../src/store/sqlite/connection.ts";
import { knownVersion } from "../../../src/store/sqlite/migrate-file.ts";
import { tasks as firstSchema } from "../../../src/store/sqlite/migrations/001-tasks.ts";
import type { Claim } from "../../../src/task/store.ts";
import { isTerminal, type NewTask, type TaskOutcome } from "../../../src/task/task.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { rounds } from "../../helpers/rounds.ts";

/** Faults of files, disks and other processes, on real files. Numbers are those of the fault matrix. */
const fixtures = path.resolve(import.meta.dirname, "../../fixtures/store");
const done: TaskOutcome = { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 };

const fresh = (taskId: string, facts: Partial<NewTask> = {}): NewTask => ({
  taskId,
  caller: "ada",
  project: "home",
  command: "text_count",
  input: {},
  origin: { door: "mcp", folder: undefined },
  digest: taskId,
  idempotencyKey: undefined,
  reason: "asked for",
  ttlMs: 60_000,
  estimateMs: undefined,
  isEndless: false,
  isProven: false,
  rules: { isSafe: true, maxAttempts: 1, backoffMs: 0 },
  isCall: false,
  questions: [],
  progressToken: undefined,
  ...facts,
});
const options = { joinsEqual: false, maxLive: 100_000 };
const begun = { ...options, claim: { worker: "w1", leaseMs: 30_000 } };
const terms = { reason: "slow", ttlMs: 60_000, rules: { isSafe: true, maxAttempts: 1, backoffMs: 0 } };
const scope = () => ({ caller: "ada" });
const claimWish = (worker: string, leaseMs: number) => ({ project: "home", worker, leaseMs, now: systemClock.now() });

async function leaseUntil(store: Store, taskId: string): Promise<number> {
  const task = await store.get(scope(), taskId);
  return task === undefined || isTerminal(task) ? 0 : (task.lease?.until ?? 0);
}

async function open(file: string, clock: Clock = systemClock): Promise<Store> {
  const store = await openStore(file, { clock });
  onTestFinished(() => store.close());
  return store;
}

/** A database with tasks on many pages, closed. */
async function makeDatabase(folder: string): Promise<string> {
  const file = path.join(folder, "tasks.db");
  const store = await openStore(file);
  for (let n = 0; n < 20; n++) await store.create(fresh(`t${n}`, { input: { text: "x".repeat(3_000) } }), options);
  await store.close();
  return file;
}

/** The same, as a crash leaves it: the last task is in the log alone. */
async function makeCrashed(folder: string): Promise<string> {
  const source = await makeDatabase(temporaryFolder());
  const store = await openStore(source);
  await store.create(fresh("last"), options);
  const file = path.join(folder, "tasks.db");
  for (const suffix of ["", "-wal"]) copyFileSync(`${source}${suffix}`, `${file}${suffix}`);
  await store.close();
  return file;
}

async function refusalOf(file: string): Promise<RuntimeError> {
  try {
    await (await openStore(file)).close();
  } catch (error) {
    expect(error).toBeInstanceOf(RuntimeError);
    return error as RuntimeError;
  }
  throw new Error(`${file} was opened`);
}

/** A program of the fixtures; killed after the test if it still runs. */
function start(
  name: string,
  ...words: string[]
): { child: ChildProcessWithoutNullStreams; line: () => Promise<string> } {
  const child = spawn(process.execPath, [path.join(fixtures, name), ...words]);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exited = new Promise<void>((resolve) => child.on("close", () => resolve()));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return {
    child,
    line: async () => {
      const { value, done: isOver } = await lines.next();
      if (isOver) throw new Error(`${name} has ended: ${stderr}`);
      return value as string;
    },
  };
}

/** A small disk of its own, or a skipped test that says why. */
function mountDisk(context: TestContext, kilobytes: number): string {
  const folder = temporaryFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k,mode=0700`, "tmpfs", folder], { stdio: "pipe" });
  } catch (error) {
    context.skip(`no disk could be mounted here: ${(error as Error).message.split("\n")[0]}`);
  }
  onTestFinished(() => void execFileSync("umount", ["--lazy", folder]));
  return folder;
}

describe("opening", () => {
  test("a SQLite that can lose rows is told from one that cannot", () => {
    for (const version of ["3.51.2", "3.50.9", "3.7.17", "2.99.99", "3.51", "3"])
      expect(isAtLeast(version, [3, 51, 3]), version).toBe(false);
    for (const version of ["3.51.3", "3.51.10", "3.52.0", "3.100.0", "4.0.0", "3.51.3.1"])
      expect(isAtLeast(version, [3, 51, 3]), version).toBe(true);
  });

  test("a database of a newer Meanwhile is refused and left alone", async () => {
    const file = await makeDatabase(temporaryFolder());
    const db = new Database(file);
    db.pragma("user_version = 99");
    db.close();
    const before = readFileSync(file);
    const refusal = await refusalOf(file);
    expect(refusal.code).toBe("SCHEMA_NEWER");
    expect(refusal.message).toContain("schema 99");
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("a database of the first schema is brought up to date, and every task in it goes on", async () => {
    const file = makeFirst(temporaryFolder());
    const store = await open(file);
    const shown = {
      isCall: false,
      questions: [],
      progressToken: undefined,
      origin: { door: "mcp", folder: undefined },
    };
    const { tasks } = await store.list(scope(), { limit: 10 });
    expect(tasks).toMatchObject([
      { taskId: "ended", status: "completed", ...shown },
      { taskId: "working", status: "working", lease: { worker: "w1" }, fence: 1, ...shown },
      { taskId: "queued", status: "queued", rules: { isSafe: true, maxAttempts: 2, backoffMs: 5 }, ...shown },
    ]);
    expect(await store.get(scope(), "ended")).toMatchObject({ outcome: done, ttlMs: 60_000 });
    expect(await store.steps("working")).toEqual(new Map([["fetch", "1"]]));
    expect(await store.durations()).toEqual([{ command: "text_count", kind: "time", bucket: 3, count: 4 }]);
    expect(await store.findEqual(scope(), "home", "same")).toMatchObject({ taskId: "queued" });
    expect((await store.create(fresh("other", { digest: "same" }), { joinsEqual: true, maxLive: 2 })).kind).toBe(
      "joined",
    );
    expect((await store.create(fresh("third"), { joinsEqual: false, maxLive: 2 })).kind).toBe("full");
    expect(await store.settle({ taskId: "working", fence: 1 }, done)).toBe(true);
    const call = fresh("call", { isCall: true, progressToken: 7 });
    await store.create(call, begun);
    expect(await store.get(scope(), "call")).toMatchObject({ isCall: true, progressToken: 7 });
    await store.close();
    expect(versionOf(file)).toBe(knownVersion);
    expect((await (await open(file)).list(scope(), { limit: 10, withCalls: true })).tasks).toHaveLength(4);
  });

  test("a database that cannot be brought up to date stays as it was", async () => {
    const file = makeFirst(temporaryFolder());
    const db = new Database(file);
    // The last change of the migration fails.
    db.exec("drop index tasks_live; create table tasks_live (x)");
    const rows = db.prepare("select * from tasks order by number").all();
    db.close();
    await expect(openStore(file)).rejects.toThrow("tasks_live");
    const after = new Database(file);
    expect(after.prepare("select * from tasks order by number").all()).toEqual(rows);
    after.close();
    expect(versionOf(file)).toBe(1);
  });

  /** What the first Meanwhile left behind: a task that waits, one that is worked on, and one that has ended. */
  function makeFirst(folder: string): string {
    const file = path.join(folder, "tasks.db");
    const db = new Database(file);
    db.pragma("journal_mode = WAL");
    db.exec(`${firstSchema}; pragma user_version = 1`);
    const now = systemClock.now();
    const facts = `'ada', 'home', 'text_count', 'same', '{}', 'asked for', 60000, 1, 2, 5, ${now}, ${now}, ${now}`;
    const names =
      "task_id, caller, project, command, digest, input, reason, ttl_ms, is_safe, max_attempts, backoff_ms, not_before, created_at, updated_at";
    for (const taskId of ["queued", "working", "ended"])
      db.exec(`insert into tasks (${names}) values ('${taskId}', ${facts})`);
    db.exec(
      `update tasks set status = 'working', fence = 1, attempts = 1, worker = 'w1', lease_until = ${now + 30_000} where task_id = 'working'`,
    );
    db.prepare(
      "update tasks set status = 'completed', outcome = ?, finished_at = ?, expires_at = ? where task_id = 'ended'",
    ).run(JSON.stringify(done), now, now + 60_000);
    db.exec(
      "insert into steps values ('working', 'fetch', '1'); insert into durations values ('text_count', 'time', 3, 4)",
    );
    db.close();
    return file;
  }

  function versionOf(file: string): unknown {
    const db = new Database(file, { readonly: true });
    const version = db.pragma("user_version", { simple: true });
    db.close();
    return version;
  }

  test("another program's database is refused and left alone", async () => {
    for (const version of [0, 1, 2]) {
      const file = path.join(temporaryFolder(), "theirs.db");
      const db = new Database(file);
      db.exec(
        `create table tasks (title text); insert into tasks values ('Buy milk'); pragma user_version = ${version}`,
      );
      db.close();
      const before = readFileSync(file);
      const refusal = await refusalOf(file);
      expect(refusal.code).toBe("STORE_UNAVAILABLE");
      expect(refusal.message).toContain("another program");
      expect(readFileSync(file).equals(before)).toBe(true);
    }
  });

  test("a path that cannot be a file is refused in a sentence", async () => {
    const folder = temporaryFolder();
    mkdirSync(path.join(folder, "tasks.db"));
    writeFileSync(path.join(folder, "file"), "");
    for (const file of [path.join(folder, "tasks.db"), path.join(folder, "file", "tasks.db")]) {
      expect(await refusalOf(file)).toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: expect.stringContaining(file),
      });
    }
  });

  test("opening what is up to date writes nothing", async () => {
    const file = await makeDatabase(temporaryFolder());
    const before = readFileSync(file);
    await (await openStore(file)).close();
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("after a crash everything acknowledged is there, also what is in the log alone", async () => {
    const store = await open(await makeCrashed(temporaryFolder()));
    expect((await store.list(scope(), { limit: 100 })).tasks).toHaveLength(21);
  });

  test("a crash in the middle of the very first write is rolled back", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    const copy = path.join(temporaryFolder(), "tasks.db");
    const db = new Database(file);
    db.exec(
      "pragma user_version = 0; pragma cache_size = 1; create table x (y); drop table x; begin; create table x (y)",
    );
    for (let n = 0; n < 50; n++) db.exec("insert into x values (zeroblob(100000))");
    for (const suffix of ["", "-journal"]) copyFileSync(`${file}${suffix}`, `${copy}${suffix}`);
    db.close();
    expect(statSync(`${copy}-journal`).size).toBeGreaterThan(0);
    await open(copy);
  });
});

describe("F16: a damaged file is refused, and not a byte of it is changed", () => {
  const damages: Record<string, (file: string) => void> = {
    "cut to one byte": (file) => truncateSync(file, 1),
    "cut within the header": (file) => truncateSync(file, 50),
    "cut after the first page": (file) => truncateSync(file, 4096),
    "cut in half": (file) => truncateSync(file, statSync(file).size / 2),
    "not a database": (file) => writeFileSync(file, "This is a shopping list, and quite a long one.\n".repeat(100)),
    "one bit of the first page's head flipped": (file) => flipBit(file, 100),
    "one bit of a later page's head flipped": (file) => flipBit(file, pageInTheMiddle(file)),
    "a page zeroed": (file) => {
      const at = pageInTheMiddle(file);
      writeFileSync(file, readFileSync(file).fill(0, at, at + 4096));
    },
  };

  for (const [how, damage] of Object.entries(damages)) {
    for (const [state, make] of Object.entries({ "after a clean end": makeDatabase, "after a crash": makeCrashed })) {
      test(`${how}, ${state}`, async () => {
        const file = await make(temporaryFolder());
        damage(file);
        const files = [file, `${file}-wal`].filter((name) => existsSync(name));
        const before = files.map((name) => readFileSync(name));
        const refusal = await refusalOf(file);
        expect(refusal.code).toBe("STORE_DAMAGED");
        expect(refusal.message).toContain(file);
        for (const [n, name] of files.entries())
          expect(readFileSync(name).equals(before[n] as Buffer), name).toBe(true);
      });
    }
  }

  // Not after a crash: the log may hold the missing page.
  test.each([1, 4095, 4096])("short of its last %i bytes, after a clean end", async (bytes) => {
    const file = await makeDatabase(temporaryFolder());
    truncateSync(file, statSync(file).size - bytes);
    expect((await refusalOf(file)).code).toBe("STORE_DAMAGED");
  });

  test("gone, while its log is still there", async () => {
    const file = await makeCrashed(temporaryFolder());
    const log = readFileSync(`${file}-wal`);
    for (const lose of [() => truncateSync(file, 0), () => rmSync(file)]) {
      lose();
      expect(await refusalOf(file)).toMatchObject({
        code: "STORE_DAMAGED",
        message: expect.stringContaining(`${file}-wal`),
      });
      expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    }
    expect(existsSync(file)).toBe(false);
  });

  /** Where a page begins that an earlier task is on: one the log has nothing about. */
  function pageInTheMiddle(file: string): number {
    return Math.floor(statSync(file).size / 4096 / 2) * 4096;
  }

  function flipBit(file: string, at: number): void {
    const bytes = readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(at) ^ 0x40, at);
    writeFileSync(file, bytes);
  }
});

describe("V6: nobody else may read results", () => {
  test.each(["000", "022", "077"])("with umask %s", async (umask) => {
    const folder = path.join(temporaryFolder(), "home", "deeper");
    const { child, line } = start("make-tasks.ts", path.join(folder, "tasks.db"), umask);
    expect(await line()).toBe("open");
    child.stdin.write("create t1\n");
    expect(await line()).toBe("done");
    const modes = Object.fromEntries(
      readdirSync(folder).map((name) => [name, (statSync(path.join(folder, name)).mode & 0o777).toString(8)]),
    );
    expect(modes).toEqual({ "tasks.db": "600", "tasks.db-wal": "600", "tasks.db-shm": "600" });
    for (const made of [folder, path.dirname(folder)]) expect(statSync(made).mode & 0o777).toBe(0o700);
  });
});

describe("F15: files that go away or may not be written", () => {
  const losses: Record<string, (file: string) => void> = {
    "the database is deleted": (file) => rmSync(file),
    "the database is moved away": (file) => renameSync(file, `${file}.old`),
    "the database is replaced": (file) => {
      copyFileSync(file, `${file}.new`);
      renameSync(`${file}.new`, file);
    },
    "its log is deleted": (file) => rmSync(`${file}-wal`),
    "its log is deleted, and its folder looks as before,": (file) => {
      rmSync(`${file}-wal`);
      utimesSync(path.dirname(file), 1.5, 1.5);
    },
    "its log is replaced": (file) => {
      copyFileSync(`${file}-wal`, `${file}.new`);
      renameSync(`${file}.new`, `${file}-wal`);
    },
    "its index of the log is deleted": (file) => rmSync(`${file}-shm`),
    "the folder is deleted": (file) => rmSync(path.dirname(file), { recursive: true }),
  };

  for (const [how, lose] of Object.entries(losses)) {
    test(`${how} while it is open: nothing is acknowledged any more`, async () => {
      const file = path.join(temporaryFolder(), "deep", "tasks.db");
      let passedMs = 0;
      const [now, monotonic] = [() => systemClock.now() + passedMs, () => systemClock.monotonic() + passedMs];
      const store = await open(file, { ...systemClock, now, monotonic });
      for (const taskId of ["t1", "t2"]) await store.create(fresh(taskId), options);
      // Nothing has changed in its folder for long.
      utimesSync(path.dirname(file), 1.5, 1.5);
      await store.report({ taskId: "none", fence: 1 }, {});
      passedMs = 1_000;
      const claim = (await store.claim(claimWish("w1", 30_000))) as Claim;
      await store.create(fresh("call", { isCall: true }), begun);
      const call = { taskId: "call", fence: 1 };
      const witness = new Database(file);
      const rows = witness.prepare("select * from tasks order by number");
      const before = rows.all();
      lose(file);
      const writes = {
        create: () => store.create(fresh("t3"), options),
        journal: () => store.create(fresh("t4", { isCall: true }), begun),
        handOut: () => store.handOut(call, terms),
        forget: () => store.forget(call),
        settle: () => store.settle(claim, done),
        cancel: () => store.cancel(scope(), "t2", "No."),
        answer: () => store.answer(scope(), "t1", "q1", { action: "decline" }),
        ask: () => store.ask(claim, { message: "How many?", schema: {}, isConfirmation: false }),
        claim: () => store.claim(claimWish("w2", 30_000)),
        keepStep: () => store.keepStep(claim, "s", "1"),
        interrupt: () => store.interrupt("w1"),
      };
      for (const [verb, write] of Object.entries(writes)) {
        await expect(write(), verb).rejects.toMatchObject({
          code: "STORE_GONE",
          message: expect.stringContaining("restart"),
        });
      }
      expect(rows.all()).toEqual(before);
      witness.close();
    });
  }

  test("the thread that keeps leases puts nothing in the place of a deleted file", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    const store = await open(file);
    rmSync(file);
    const stop = store.keepLeases("w1", 1_000, 20);
    // It has begun before it hears that it shall stop.
    await stop();
    expect(existsSync(file)).toBe(false);
  });

  test("on a disk that may not be written", async (context) => {
    const folder = mountDisk(context, 4_000);
    const file = await makeDatabase(folder);
    execFileSync("mount", ["-o", "remount,ro", folder]);
    for (const name of [file, path.join(folder, "new.db"), path.join(folder, "deeper", "new.db")]) {
      expect(await refusalOf(name), name).toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: expect.stringContaining(name),
      });
    }
    execFileSync("mount", ["-o", "remount,rw", folder]);
    expect((await (await open(file)).list(scope(), { limit: 100 })).tasks).toHaveLength(20);
  });
});

test("every fault of storage has a sentence for the operator, with the path, and one for clients, without", () => {
  const file = "/home/ada/.meanwhile/tasks.db";
  const sentences = {
    SQLITE_FULL: ["the disk is full", "is full; whoever runs the server has to make room"],
    ENOSPC: ["the disk is full", "is full; whoever runs the server has to make room"],
    SQLITE_READONLY_DBMOVED: [
      "may not be written",
      "may not be written; whoever runs the server has to make it writable",
    ],
    EROFS: ["may not be written", "may not be written; whoever runs the server has to make it writable"],
    SQLITE_CANTOPEN: ["cannot be opened", "cannot be opened; whoever runs the server finds the reason in its log"],
    EACCES: ["EACCES: /home/ada", "cannot be opened; whoever runs the server finds the reason in its log"],
    SQLITE_IOERR_WRITE: ["check the disk", "failed; whoever runs the server has to check its disk"],
    SQLITE_NOTADB: ["is damaged", "is damaged; whoever runs the server has to restore it"],
    SQLITE_BUSY: ["keeps it locked", "call again in a moment"],
    EMFILE: ["no file descriptors are left; raise their number with `ulimit -n`", "(ulimit -n)"],
    ENFILE: ["no file descriptors are left; raise their number with `ulimit -n`", "(ulimit -n)"],
  };
  for (const [code, [forOperator = "", forClients = ""]] of Object.entries(sentences)) {
    const error = toRuntimeError(Object.assign(new Error(`${code}: ${file}`), { code }), file) as RuntimeError;
    expect(error.message, code).toContain(file);
    expect(error.message, code).toContain(forOperator);
    expect(error.forClients, code).toContain(forClients);
    expect(error.forClients, code).not.toContain("/");
  }
});

describe("F11: a full disk", () => {
  test("what cannot be written is not acknowledged, and with room again the same store goes on", async (context) => {
    const folder = mountDisk(context, 1_000);
    const file = path.join(folder, "tasks.db");
    const store = await open(file);
    for (const taskId of ["running", "waiting"]) await store.create(fresh(taskId), options);
    const claim = (await store.claim(claimWish("w1", 30_000))) as Claim;
    writeFileSync(path.join(folder, "filler"), Buffer.alloc(400_000));
    const acknowledged: string[] = ["running", "waiting"];
    let refusal: unknown;
    for (let n = 0; refusal === undefined && n < 1_000; n++) {
      await store.create(fresh(`t${n}`, { input: { text: "x".repeat(10_000) } }), options).then(
        () => acknowledged.push(`t${n}`),
        (error: unknown) => (refusal = error),
      );
    }
    expect(refusal).toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("the disk is full"),
    });
    const big = { ...done, data: { text: "x".repeat(200_000) } };
    await expect(store.settle(claim, big)).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    fillUp(path.join(folder, "rest"));
    const _now = systemClock.now();
    const question = { message: "How many?", schema: {}, isConfirmation: false };
    const writes = {
      claim: () => store.claim(claimWish("w2", 30_000)),
      ask: () => store.ask(claim, question),
      keepStep: () => store.keepStep(claim, "step", "1"),
      report: () => store.report(claim, { statusMessage: "Page 3." }),
      cancel: () => store.cancel(scope(), "waiting", "No."),
    };
    // A small write may still find room in the log. Whether it did or not, what is said is what was done.
    let refused = 0;
    for (const [verb, write] of Object.entries(writes)) {
      const before = contentsOf(file);
      const isTaken = await write().then(Boolean, (error: unknown) => {
        expect(error, verb).toMatchObject({
          code: "STORE_UNAVAILABLE",
          message: expect.stringContaining("the disk is full"),
        });
        refused += 1;
        return false;
      });
      expect(contentsOf(file) !== before, `${verb} was recorded`).toBe(isTaken);
    }
    expect(refused).toBeGreaterThan(0);

    for (const name of ["filler", "rest"]) rmSync(path.join(folder, name));
    expect(await store.settle(claim, big)).toBe(true);
    expect((await store.create(fresh("after"), options)).kind).toBe("created");
    const { tasks } = await store.list(scope(), { limit: 1_000 });
    expect(tasks.map(({ taskId }) => taskId)).toEqual([...acknowledged, "after"].reverse());
    await store.close();
    const db = new Database(file);
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    db.close();
  });

  function contentsOf(file: string): string {
    const db = new Database(file, { readonly: true });
    const contents = JSON.stringify([db.prepare("select * from tasks").all(), db.prepare("select * from steps").all()]);
    db.close();
    return contents;
  }

  function fillUp(file: string): void {
    try {
      for (;;) appendFileSync(file, Buffer.alloc(4096));
    } catch (error) {
      expect(error).toMatchObject({ code: "ENOSPC" });
    }
  }

  test("a process that may not write longer files is refused, and with leave again goes on", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    const { child, line } = start("make-tasks.ts", file, "022", "50000");
    expect(await line()).toBe("open");
    const limit = (bytes: string) => execFileSync("prlimit", ["--pid", String(child.pid), `--fsize=${bytes}`]);
    limit("1000000:unlimited");
    const answers: string[] = [];
    for (let n = 0; n < 60 && answers.at(-1) !== "refused"; n++) {
      child.stdin.write(`create t${n}\n`);
      const answer = await line();
      answers.push(answer.startsWith("STORE_UNAVAILABLE: ") && answer.includes("disk") ? "refused" : answer);
    }
    expect(answers.at(-1)).toBe("refused");
    limit("unlimited:unlimited");
    child.stdin.write("create after\n");
    expect(await line()).toBe("done");
    const made = (await (await open(file)).list(scope(), { limit: 1_000 })).tasks.map(({ taskId }) => taskId);
    expect(made).toEqual(
      ["after", ...answers.slice(0, -1).map((_, n) => `t${n}`)].sort((a, b) => made.indexOf(a) - made.indexOf(b)),
    );
    expect(made).toHaveLength(answers.length);
  });
});

test("several processes that open a new file at the same moment all have it", async () => {
  const folder = temporaryFolder();
  const children = Array.from({ length: 6 }, () => start("open-files.ts"));
  const said = new Set<string>();
  for (let round = 0; round < rounds.filesOpenedAtOnce; round++) {
    for (const { child } of children) child.stdin.write(`${path.join(folder, `${round}.db`)}\n`);
    for (const answer of await Promise.all(children.map(({ line }) => line()))) said.add(answer);
  }
  expect([...said]).toEqual(["opened"]);
});

describe("F13: somebody else keeps the database locked", () => {
  test("a write waits without stopping anything else, reads do not wait, and the lease is kept", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    const store = await open(file);
    await store.create(fresh("before"), options);
    await store.claim(claimWish("w1", 10_000));
    onTestFinished(store.keepLeases("w1", 10_000, 1_000));
    const { line } = start("hold-lock.ts", file, "3000");
    expect(await line()).toBe("locked");
    const before = await leaseUntil(store, "before");
    let isOver = false;
    const created = store.create(fresh("meanwhile"), options).then(({ kind }) => {
      isOver = true;
      return kind;
    });
    let ticks = 0;
    await waitFor(() => {
      ticks += 1;
      return isOver;
    });
    expect(await created).toBe("created");
    // Three seconds in which nothing else had to wait for longer than one try.
    expect(ticks).toBeGreaterThan(10);
    await waitFor(async () => (await leaseUntil(store, "before")) !== before);
  });

  test("a write leaves a busy file to others at first, and asks often once it has waited", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    const pauses: number[] = [];
    const after = (ms: number, callback: () => void) => {
      if (pauses.push(ms) === 5) other.exec("rollback");
      const soon = setImmediate(callback);
      return () => clearImmediate(soon);
    };
    const store = await open(file, { ...systemClock, after });
    await store.create(fresh("t1"), options);
    const other = new Database(file);
    onTestFinished(() => void other.close());
    other.exec("begin immediate");
    expect((await store.create(fresh("t2"), options)).kind).toBe("created");
    expect(pauses).toEqual([10, 5, 3, 3, 3]);
  });

  test("a lock that does not end is an error that says so, and nothing was done", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    // The same clock, forty times as fast where it is only measured: the limit is reached in no time.
    const store = await open(file, { ...systemClock, monotonic: () => systemClock.monotonic() * 40 });
    const { child, line } = start("hold-lock.ts", file);
    expect(await line()).toBe("locked");
    await expect(store.create(fresh("t1"), options)).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
      message: expect.stringContaining("another process keeps it locked"),
    });
    child.stdin.write("go on\n");
    expect((await store.create(fresh("t2"), options)).kind).toBe("created");
    expect((await store.list(scope(), { limit: 10 })).tasks.map(({ taskId }) => taskId)).toEqual(["t2"]);
  });

  test("a store can be opened, and read, while another process is writing", async () => {
    const file = await makeDatabase(temporaryFolder());
    const { line } = start("hold-lock.ts", file);
    expect(await line()).toBe("locked");
    expect((await (await open(file)).list(scope(), { limit: 100 })).tasks).toHaveLength(20);
  });
});

test("F14: beside three greedy writers, leases are still renewed in time", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const store = await open(file);
  await store.create(fresh("t1"), options);
  const leaseMs = 30_000;
  await store.claim(claimWish("w1", leaseMs));
  const writers = [1, 2, 3].map(() => start("greedy-writer.ts", file));
  for (const { line } of writers) expect(await line()).toBe("writing");
  onTestFinished(store.keepLeases("w1", leaseMs, 1_000));
  let last = systemClock.now();
  let longest = 0;
  let seen = 0;
  for (let beats = 0; beats < 4; beats++) {
    seen = await waitFor(async () => {
      const until = await leaseUntil(store, "t1");
      longest = Math.max(longest, systemClock.now() - last);
      return until !== seen && until;
    });
    last = systemClock.now();
  }
  expect(longest).toBeLessThan(leaseMs);
});

test("F04: leases are renewed while the event loop stands still", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const store = await open(file);
  await store.create(fresh("t1"), options);
  await store.claim(claimWish("w1", 60_000));
  const renewedAt = async () => (await leaseUntil(store, "t1")) - 60_000;
  const first = await renewedAt();
  onTestFinished(store.keepLeases("w1", 60_000, 50));
  await waitFor(async () => (await renewedAt()) !== first);
  const blockedAt = systemClock.now();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  expect(await renewedAt()).toBeGreaterThan(blockedAt + 500);
});

/**
 * Watches a process, or makes its system calls fail; the returned function ends that and gives the record. Skips where
 * that is not possible.
 */
async function trace(
  context: TestContext,
  child: ChildProcessWithoutNullStreams,
  what: string,
): Promise<() => Promise<string>> {
  const record = path.join(temporaryFolder(), "strace");
  const strace = spawn("strace", ["-f", "-e", what, "-o", record, "-p", String(child.pid)]);
  onTestFinished(() => void strace.kill("SIGKILL"));
  const stopped = new Promise((resolve) => strace.once("close", resolve));
  const said = await new Promise<string>((resolve) => {
    strace.stderr.once("data", (text: Buffer) => resolve(text.toString()));
    strace.once("error", (error) => resolve(error.message));
  });
  if (!said.includes("attached")) context.skip(`no process can be traced here: ${said}`);
  return async () => {
    strace.kill("SIGINT");
    await stopped;
    return readFileSync(record, "utf8");
  };
}

test("T8: what is acknowledged has been through the disk's cache", async (context) => {
  const { child, line } = start("make-tasks.ts", path.join(temporaryFolder(), "tasks.db"));
  expect(await line()).toBe("open");
  const count = 10;
  const syncsOf = async (verb: string, taskId: string) => {
    const stop = await trace(context, child, "trace=fdatasync,fsync");
    for (let n = 0; n < count; n++) {
      child.stdin.write(`${verb} ${taskId}${n}\n`);
      expect(await line(), verb).toBe("done");
    }
    return (await stop()).match(/sync\(/g)?.length ?? 0;
  };
  for (const [verb, taskId] of [
    ["create", "t"],
    ["begin", "b"],
  ] as const)
    expect(await syncsOf(verb, taskId), verb).toBeGreaterThanOrEqual(count);
  // Nobody has been told of a call that is journalled, so nothing waits for the disk.
  for (const taskId of ["c", "d"]) expect(await syncsOf("journal", taskId)).toBeLessThan(count);
  expect(await syncsOf("forget", "d")).toBeLessThan(count);
  await syncsOf("claim", "t");
  for (const verb of ["ask", "answer", "settle"]) expect(await syncsOf(verb, "t"), verb).toBeGreaterThanOrEqual(count);
  for (const verb of ["handOut", "settle"]) expect(await syncsOf(verb, "c"), verb).toBeGreaterThanOrEqual(count);
});

test("F12: what the disk did not take is not acknowledged", async (context) => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const { child, line } = start("make-tasks.ts", file);
  expect(await line()).toBe("open");
  for (const words of ["create t1", "claim t1", "journal c1"]) {
    child.stdin.write(`${words}\n`);
    expect(await line()).toBe("done");
  }
  const stop = await trace(context, child, "inject=fdatasync,fsync:error=EIO");
  for (const words of ["create t2", "ask t1", "settle t1", "cancel t1", "handOut c1"]) {
    child.stdin.write(`${words}\n`);
    expect(await line(), words).toMatch(/^STORE_UNAVAILABLE: .*check the disk/);
  }
  await stop();
  const store = await open(file);
  const { tasks } = await store.list(scope(), { limit: 10, withCalls: true });
  expect(tasks).toMatchObject([
    { taskId: "c1", isCall: true },
    { taskId: "t1", status: "working" },
  ]);
  child.stdin.write("settle t1\n");
  expect(await line()).toBe("done");
  expect((await store.get(scope(), "t1"))?.status).toBe("completed");
});

test("F12: an end and the removal of its steps are one write, taken or not", async (context) => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const { child, line } = start("make-tasks.ts", file);
  expect(await line()).toBe("open");
  const store = await open(file);
  for (const verb of ["settle", "cancel"]) {
    for (const words of [`create ${verb}`, `claim ${verb}`, `keepStep ${verb}`]) {
      child.stdin.write(`${words}\n`);
      expect(await line()).toBe("done");
    }
    const stop = await trace(context, child, "inject=fdatasync,fsync:error=EIO:when=2+");
    child.stdin.write(`${verb} ${verb}\n`);
    const answer = await line();
    await stop();
    const task = await store.get(scope(), verb);
    expect(task?.status !== "working", `${verb} was recorded`).toBe(answer === "done");
  }
});
