import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { openStore, type Store } from "../../../src/store/open.ts";
import { knownVersion } from "../../../src/store/sqlite/migrate-file.ts";
import { tasks } from "../../../src/store/sqlite/migrations/001-tasks.ts";
import { calls } from "../../../src/store/sqlite/migrations/002-calls.ts";
import { origins } from "../../../src/store/sqlite/migrations/003-origins.ts";
import { fairShares } from "../../../src/store/sqlite/migrations/004-fair-shares.ts";
import { estimates } from "../../../src/store/sqlite/migrations/005-estimates.ts";
import { environments } from "../../../src/store/sqlite/migrations/006-environments.ts";
import { clients } from "../../../src/store/sqlite/migrations/007-clients.ts";
import { type CompletedOutcome, isTerminal, type NewTask, type Task } from "../../../src/task/task.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { casesOf, rounds } from "../../helpers/rounds.ts";

/** Ends in the middle of what a SQLite file takes long for, and what a power cut may leave of it. */
const dieAt = path.resolve(import.meta.dirname, "../../fixtures/store/die-at.ts");
const scope = { caller: "ada" };
const done: CompletedOutcome = { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 };
const options = { joinsEqual: false, maxLive: 100_000 };
const suffixes = ["", "-wal"];

const fresh = (taskId: string, text = ""): NewTask => ({
  taskId,
  caller: "ada",
  project: "home",
  command: "text_count",
  input: { text },
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
});

async function open(file: string): Promise<Store> {
  const store = await openStore(file);
  onTestFinished(() => store.close());
  return store;
}

/** Reads a database as it lies there, without changing anything of it. */
function look<T>(file: string, act: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return act(db);
  } finally {
    db.close();
  }
}

const count = (file: string, what: string) =>
  look(file, (db) => db.prepare(`select count(*) from ${what}`).pluck().get() as number);
const versionOf = (file: string) => look(file, (db) => db.pragma("user_version", { simple: true }));

/** Nothing of it is damaged, and nothing is left of a task that is gone. */
function expectSound(file: string): void {
  look(file, (db) => {
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(db.pragma("foreign_key_check")).toEqual([]);
    for (const part of ["inputs", "outcomes"])
      expect(db.prepare(`select number from ${part} except select number from tasks`).all()).toEqual([]);
    expect(db.prepare("select number from tasks except select number from inputs").all()).toEqual([]);
    expect(
      db.prepare("select number from tasks where finished_at is not null except select number from outcomes").all(),
    ).toEqual([]);
  });
}

/** Runs to where it shall die; what ended it. */
function dieAtStep(file: string, where: string): NodeJS.Signals | null {
  const { signal, stderr } = spawnSync(process.execPath, [dieAt, file, where], { encoding: "utf8" });
  if (signal === null) expect(stderr).toBe("");
  return signal;
}

/** What a Meanwhile of schema 7 left: so many tasks of all kinds, some of them large. */
function makeSeventh(total: number, bytes: number): string {
  const file = path.join(temporaryFolder(), "tasks.db");
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = OFF");
  db.exec([tasks, calls, origins, fairShares, estimates, environments, clients].join("\n"));
  db.pragma("user_version = 7");
  const now = systemClock.now();
  const insert = db.prepare(`
    insert into tasks (task_id, caller, project, command, digest, idempotency_key, input, reason, ttl_ms, estimate_ms, is_safe, max_attempts, backoff_ms, status, status_message,
                       version, fence, attempts, crashes, not_before, worker, lease_until, progress, questions, outcome, created_at, updated_at, started_at, finished_at, expires_at,
                       is_call, progress_token, door, folder, is_endless, is_proven, environment, client)
    values (:taskId, 'ada', 'home', 'text_count', :digest, :key, :input, 'asked for', 60000000, 7.5, 1, 2, 5, :status, :message,
            4, 2, 1, 1, ${now}, :worker, :leaseUntil, :progress, '[]', :outcome, ${now - 9}, ${now - 8}, ${now - 7}, :finishedAt, :expiresAt,
            0, '"token"', 'terminal', '/work', 1, 1, '{"KEY":"mark"}', '{"roots":[]}')`);
  db.transaction(() => {
    for (let n = 0; n < total; n++) {
      const status = (["completed", "queued", "working", "failed", "cancelled"] as const)[n % 5] ?? "queued";
      const isLive = status === "queued" || status === "working";
      const ended = status === "completed" ? { ...done, data: { n, text: "y".repeat(bytes) } } : { ...done, n };
      insert.run({
        taskId: `t${n}`,
        digest: `d${n}`,
        key: n % 7 === 0 ? `key ${n}` : null,
        input: JSON.stringify({ n, text: "x".repeat(bytes) }),
        status,
        message: n % 2 === 0 ? "So far so good." : null,
        worker: status === "working" ? "w1" : null,
        leaseUntil: status === "working" ? now + 30_000 : null,
        progress: n % 3 === 0 ? '{"value":0.5}' : null,
        outcome: isLive ? null : JSON.stringify(ended),
        finishedAt: isLive ? null : now - 5,
        expiresAt: isLive ? null : now + 60_000_000,
      });
    }
    db.exec("insert into steps values ('t2', 'fetch', '1'), ('t2', 'parse', '2')");
    // Numbers of tasks that are gone are not given again.
    db.exec("delete from tasks where number = (select max(number) from tasks)");
  })();
  db.close();
  return file;
}

/** Everything that was on record, in one order, whatever tables it is in. */
function contentsOf(file: string): unknown {
  return look(file, (db) => {
    const isApart = db.prepare("select 1 from sqlite_schema where name = 'inputs'").get() !== undefined;
    const from = isApart ? "tasks left join inputs using (number) left join outcomes using (number)" : "tasks";
    const rows = db.prepare(`select * from ${from} order by number`).all() as Record<string, unknown>[];
    const inOrder = rows.map(({ bytes: _, ...row }) => Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
    return [inOrder, db.prepare("select * from steps order by task_id, name").all()];
  });
}

describe("a database of schema 7", () => {
  test("is brought up to date without loss, and its numbers go on", async () => {
    const file = makeSeventh(500, 200);
    const before = contentsOf(file);
    const last = look(file, (db) => db.prepare("select seq from sqlite_sequence").pluck().get() as number);
    const store = await openStore(file);
    await store.close();
    expect(versionOf(file)).toBe(knownVersion);
    expect(contentsOf(file)).toEqual(before);
    expectSound(file);
    look(file, (db) => expect(db.pragma("auto_vacuum", { simple: true })).toBe(2));
    const again = await open(file);
    await again.create(fresh("next"), options);
    expect(look(file, (db) => db.prepare("select number from tasks where task_id = 'next'").pluck().get())).toBe(
      last + 1,
    );
    expect(await again.steps("t2")).toEqual(
      new Map([
        ["fetch", "1"],
        ["parse", "2"],
      ]),
    );
    expect(await again.get(scope, "t0")).toMatchObject({ input: { n: 0 }, outcome: { data: { n: 0 } } });
    expect(await again.settle({ taskId: "t2", fence: 2 }, done)).toBe(true);
    expect(await again.steps("t2")).toEqual(new Map());
  });

  test("killed at the end of the change, before it is committed: the old one is there, and the next start does it again", async () => {
    const file = makeSeventh(2_000, 500);
    const before = contentsOf(file);
    for (let round = 0; round < rounds.migrationCrashes; round++) {
      expect(dieAtStep(file, "mid-migration:1")).toBe("SIGKILL");
      expect(versionOf(file)).toBe(7);
      expect(contentsOf(file)).toEqual(before);
    }
    await open(file);
    expect(versionOf(file)).toBe(knownVersion);
    expect(contentsOf(file)).toEqual(before);
    expectSound(file);
  });

  test.each(casesOf([1, 4, 16, 48], 1))("killed when %i MiB of the change are in the log", async (mebibytes) => {
    const file = makeSeventh(64, 512 * 1024);
    const before = contentsOf(file);
    const child = spawn(process.execPath, [dieAt, file]);
    const exited = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
    const logBytes = () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    await waitFor(() => child.exitCode !== null || logBytes() > mebibytes * 1024 * 1024);
    child.kill("SIGKILL");
    expect(await exited).toBe("SIGKILL");
    expect(contentsOf(file)).toEqual(before);
    await (await openStore(file)).close();
    expect(versionOf(file)).toBe(knownVersion);
    expect(contentsOf(file)).toEqual(before);
    expectSound(file);
  });

  test("is brought up to date in bounded memory, however much is in it", () => {
    const mebibytes = rounds.migratedMebibytes;
    const file = makeSeventh(mebibytes * 2, 512 * 1024);
    const script = `
      const { openStore } = await import(${JSON.stringify(path.resolve(import.meta.dirname, "../../../src/store/open.ts"))});
      const small = await openStore(${JSON.stringify(path.join(temporaryFolder(), "small.db"))});
      await small.close();
      const before = process.resourceUsage().maxRSS;
      await (await openStore(${JSON.stringify(file)})).close();
      process.stdout.write(String(process.resourceUsage().maxRSS - before));`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(versionOf(file)).toBe(knownVersion);
    expect(statSync(file).size).toBeGreaterThan(mebibytes * 1024 * 1024);
    // SQLite's own cache holds 16 MB.
    expect(Number(stdout) / 1024).toBeLessThan(64);
  });
});

describe("clearing up", () => {
  /** So many tasks, all of them expired but every tenth, with a few that are live. */
  async function makeExpired(total: number): Promise<string> {
    const file = path.join(temporaryFolder(), "tasks.db");
    const store = await openStore(file);
    const claim = { worker: "w1", leaseMs: 30_000 };
    for (let first = 0; first < total; first += 500)
      await Promise.all(
        Array.from({ length: Math.min(500, total - first) }, async (_, n) => {
          await store.create(fresh(`t${first + n}`, "x".repeat(2_000)), { ...options, claim });
          if ((first + n) % 50 > 0) await store.settle({ taskId: `t${first + n}`, fence: 1 }, done);
        }),
      );
    await store.close();
    look(file, (db) => db.exec("update tasks set expires_at = 1 where finished_at is not null and number % 10 > 0"));
    return file;
  }

  test.each(["after-piece:1", "after-piece:3", "mid-give-back:1", "mid-give-back:2"])(
    "killed at %s: what is gone is gone whole, and the next one goes on",
    async (where) => {
      const file = await makeExpired(rounds.sweptTasks);
      const live = count(file, "tasks where finished_at is null");
      const kept = count(file, "tasks where expires_at > 1");
      const before = count(file, "tasks where expires_at = 1");
      expect(dieAtStep(file, where)).toBe("SIGKILL");
      const left = count(file, "tasks where expires_at = 1");
      if (where.startsWith("after-piece")) expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThan(before);
      expectSound(file);
      const store = await open(file);
      expect(await store.sweep()).toBe(left);
      expect(count(file, "tasks where finished_at is null")).toBe(live);
      expect(count(file, "tasks where finished_at is not null")).toBe(kept);
      expectSound(file);
    },
  );

  test("pages are given back to the disk, and some are kept for what comes", async () => {
    const file = await makeExpired(3_000);
    const before = statSync(file).size;
    const store = await openStore(file);
    await store.sweep();
    await store.close();
    expect(statSync(file).size).toBeLessThan(before / 2);
    expect(look(file, (db) => db.pragma("freelist_count", { simple: true }))).toBeLessThanOrEqual(256);
    expectSound(file);
  });

  test("the log of a long sweep does not grow with it", async () => {
    const file = await makeExpired(rounds.longSweepTasks);
    const store = await open(file);
    await store.sweep();
    expect(statSync(`${file}-wal`).size).toBeLessThan(24 * 1024 * 1024);
  });
});

/**
 * A power cut takes from the log what was not synced, from its end. Which bytes a disk would have kept cannot be asked
 * of it, so they are taken as the log was when each write was acknowledged: what was acknowledged has to be in them.
 * What came after an acknowledgement may be there, or not, or torn. T8 of sqlite-faults.test.ts shows with `strace` that
 * a sync lies between each write and its acknowledgement.
 */
describe("a power cut", () => {
  interface Snapshot {
    readonly file: string;
    readonly said: ReadonlyMap<string, string>;
    readonly logBytes: number;
  }

  /** Does this and that, and keeps the files as they were when each was acknowledged. */
  async function work(steps: number): Promise<Snapshot[]> {
    const file = path.join(temporaryFolder(), "tasks.db");
    const store = await open(file);
    const said = new Map<string, string>();
    const taken: Snapshot[] = [];
    for (let n = 0; n < steps; n++) {
      const [made, cancelled] = [`t${n}`, `c${n}`];
      await store.create(fresh(made, "x".repeat(n * 300)), { ...options, claim: { worker: "w1", leaseMs: 30_000 } });
      said.set(made, "working");
      if (n % 2 === 0) {
        await store.settle({ taskId: made, fence: 1 }, { ...done, data: { n } });
        said.set(made, "completed");
      }
      if (n % 3 === 0) {
        await store.create(fresh(cancelled), options);
        await store.cancel(scope, cancelled, "No.");
        said.set(cancelled, "cancelled");
      }
      taken.push(snapshot(file, said));
    }
    return taken;
  }

  function snapshot(file: string, said: ReadonlyMap<string, string>): Snapshot {
    const copy = path.join(temporaryFolder(), "tasks.db");
    for (const suffix of suffixes)
      if (existsSync(`${file}${suffix}`)) copyFileSync(`${file}${suffix}`, `${copy}${suffix}`);
    return { file: copy, said: new Map(said), logBytes: statSync(`${copy}-wal`).size };
  }

  async function statusesIn(file: string): Promise<ReadonlyMap<string, string>> {
    const store = await openStore(file);
    const { tasks: found } = await store.list(scope, { limit: 1_000 });
    const all = await Promise.all(found.map(({ taskId }) => store.get(scope, taskId) as Promise<Task>));
    await store.close();
    for (const task of all) if (isTerminal(task)) expect(task.outcome.ending).toBe(task.status);
    expectSound(file);
    return new Map(all.map(({ taskId, status }) => [taskId, status]));
  }

  test("what was acknowledged is in the files as they were at that moment", async () => {
    for (const { file, said } of await work(rounds.snapshots)) expect(await statusesIn(file)).toEqual(said);
  });

  const losses: Record<string, (file: string, from: number) => void> = {
    "what came later is cut off": (file, from) => truncateSync(file, from),
    "what came later is cut off within a frame": (file, from) => truncateSync(file, from + 1_234),
    "what came later is torn: its first half is there": (file, from) =>
      truncateSync(file, from + Math.floor((statSync(file).size - from) / 2)),
    "what came later is zeroes": (file, from) => writeFileSync(file, readFileSync(file).fill(0, from)),
    "one byte of what came later is another": (file, from) => {
      const bytes = readFileSync(file);
      bytes.writeUInt8(bytes.readUInt8(from + 40) ^ 0xff, from + 40);
      writeFileSync(file, bytes);
    },
  };

  test.each(Object.entries(losses))("a torn log: %s, and what was acknowledged before is there", async (_, lose) => {
    const taken = await work(rounds.tornSnapshots);
    for (const [at, { logBytes, said }] of taken.slice(0, -1).entries()) {
      const later = taken[at + 1] as Snapshot;
      if (later.logBytes <= logBytes) continue;
      const copy = path.join(temporaryFolder(), "tasks.db");
      for (const suffix of suffixes) copyFileSync(`${later.file}${suffix}`, `${copy}${suffix}`);
      lose(`${copy}-wal`, logBytes);
      const found = await statusesIn(copy);
      for (const [taskId, status] of found)
        expect([said.get(taskId), later.said.get(taskId), "working", "queued"]).toContain(status);
      for (const taskId of said.keys()) expect(found.has(taskId), taskId).toBe(true);
      for (const [taskId, status] of said) if (status !== "working") expect(found.get(taskId)).toBe(status);
    }
  });
});
