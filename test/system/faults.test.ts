import { type ChildProcess, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { openTasks } from "../../src/runtime/open-tasks.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import type { Store } from "../../src/store/open.ts";
import { createWorkerName, isKnownDead } from "../../src/system/worker-name.ts";
import { StoreDispatcher } from "../../src/task/dispatcher.ts";
import { UnknownTask } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { Sweeper } from "../../src/task/sweeper.ts";
import { isTerminal, type Task } from "../../src/task/task.ts";
import { Worker } from "../../src/task/worker.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { engineOn, isRunning, openStage, startWorker, stores } from "../chaos/cast.ts";
import { readLines } from "../chaos/check.ts";
import { entryOf, type RunLine } from "../chaos/commands.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startHttp, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { casesOf, rounds } from "../helpers/rounds.ts";

const minutes = 60_000;
const runsOf = (folder: string, key: string) =>
  readLines<RunLine>(path.join(folder, "runs.jsonl")).filter((line) => line.key === key);
const attemptsOf = (folder: string, key: string, what: RunLine["what"]) =>
  runsOf(folder, key)
    .filter((line) => line.what === what)
    .map((line) => line.attempt);
const completed = { ending: "completed", data: { by: "worker" }, messages: [], log: [], durationMs: 1 } as const;

async function taskWhen(find: () => Promise<Task>, isRight: (task: Task) => boolean, guardMs = 30_000): Promise<Task> {
  const end = performance.now() + guardMs;
  for (;;) {
    const task = await find();
    if (isRight(task)) return task;
    if (performance.now() > end) throw new Error(`the task is still ${task.status}: ${task.statusMessage}`);
    await wait(10);
  }
}

describe("a worker that is lost", () => {
  test(
    "F03 stands still past its lease: another one finishes, and the late result is refused",
    async () => {
      const folder = temporaryFolder();
      const { store, engine, create } = await openStage(folder);
      const leaseMs = 300;
      // The other one is done long before its own lease ends.
      vi.spyOn(store, "keepLeases").mockReturnValue(() => undefined);
      const times = rounds.stalledWorkers;
      const late = await startWorker(folder, leaseMs);
      let takenOver = 0;
      for (let round = 1; round <= times; round++) {
        const key = `round ${round}`;
        const { taskId } = await create("safe", { key, ms: 400 });
        await waitFor(() => attemptsOf(folder, key, "start").includes(1));
        await stopBetweenWrites(late, path.join(folder, "tasks.db"));
        const isTooLate = isTerminal(await engine.get("local:ada", taskId));
        const stopOther = startHere(store, folder, leaseMs);
        const ended = await engine.wait("local:ada", taskId);
        await stopOther();
        late.kill("SIGCONT");
        if (!isTooLate) {
          expect(ended).toMatchObject({
            status: "completed",
            outcome: { data: { attempt: ended.fence, pid: process.pid } },
          });
          // It works on: either it finishes and is refused, or, on a busy machine, it notices first and stops.
          const hasFinished = () => runsOf(folder, key).some(({ what, pid }) => what === "finish" && pid === late.pid);
          await waitFor(hasFinished, undefined, 2_000).catch(() => undefined);
          await wait(50);
          takenOver += 1;
        }
        expect(await engine.get("local:ada", taskId)).toEqual(ended);
      }
      expect(takenOver).toBeGreaterThan(times / 2);
    },
    15 * minutes,
  );

  test("F04 blocks its event loop for 9 s: the lease of 3 s is kept, there is one run and one outcome", async () => {
    const folder = temporaryFolder();
    const { engine, create } = await openStage(folder);
    await Promise.all([startWorker(folder, 3_000), startWorker(folder, 3_000)]);
    const { taskId } = await create("blocks", { key: "k", ms: 9_000 });
    expect(await engine.wait("local:ada", taskId)).toMatchObject({ status: "completed", fence: 1, crashes: 0 });
    expect(attemptsOf(folder, "k", "start")).toEqual([1]);
  });

  test("F05 is dead, on this machine: its task is taken over at once, although its lease runs for 30 s", async () => {
    const folder = temporaryFolder();
    const { engine, create } = await openStage(folder);
    const first = await startWorker(folder, 30_000);
    const { taskId } = await create("safe", { key: "k", ms: 60_000 });
    await waitFor(() => attemptsOf(folder, "k", "start").includes(1));
    await startWorker(folder, 30_000);
    const killedAt = performance.now();
    first.kill("SIGKILL");
    await waitFor(() => attemptsOf(folder, "k", "start").includes(2));
    const tookMs = performance.now() - killedAt;
    process.stdout.write(`F05: taken over after ${Math.round(tookMs)} ms\n`);
    // The promise is 2 s; whatever else this machine does, it is long before the lease would have ended.
    expect(tookMs).toBeLessThan(25_000);
    expect(await engine.get("local:ada", taskId)).toMatchObject({
      status: "working",
      fence: 2,
      crashes: 1,
      attempts: 1,
    });
  });

  test("is killed: what its tools have left behind is found in the next process, where that was safe", async () => {
    const folder = temporaryFolder();
    const { store, engine, create } = await openStage(folder);
    const first = await startWorker(folder, 30_000);
    const ids = await Promise.all([true, false].map(async (isSafe) => (await create("takenUp", { isSafe })).taskId));
    const said = async (taskId: string) => [...(await store.steps(taskId)).values()].join();
    for (const taskId of ids)
      await vi.waitFor(async () => expect(await said(taskId)).toContain("last"), { timeout: 50_000 });
    first.kill("SIGKILL");
    await startWorker(folder, 30_000);
    const [safe, unsafe] = await Promise.all(ids.map((taskId) => engine.wait("local:ada", taskId)));
    expect(safe).toMatchObject({ status: "completed", fence: 2, crashes: 1, attempts: 1 });
    expect(JSON.parse((safe as { outcome?: { foreign?: string } }).outcome?.foreign ?? "")).toMatchObject({
      structuredContent: { attempt: 2, leftBehind: { said: "last" } },
    });
    expect(unsafe).toMatchObject({ status: "failed", fence: 1, outcome: { cause: "interrupted" } });
  });

  test.each(stores)(
    "F05 is on another machine: its task is taken over between one lease and 5 s more (%s)",
    async (_name, open) => {
      const clock = new FakeClock();
      const store = await open(clock);
      const engine = engineOn(store, clock);
      const sweeper = startSweeper(store, clock);
      await pass(clock, 60);
      const task = await createOn(engine, "safe");
      await store.claim({ project: "chaos", worker: "elsewhere|boot|1|1|x", leaseMs: 30_000 });
      const claimedAt = clock.now();
      for (let second = 0; second < 40 && (await engine.get("local:ada", task.taskId)).status === "working"; second++)
        await pass(clock, 1);
      sweeper.stop();
      expect(clock.now() - claimedAt).toBeGreaterThanOrEqual(30_000);
      expect(clock.now() - claimedAt).toBeLessThanOrEqual(36_000);
      expect(await engine.get("local:ada", task.taskId)).toMatchObject({ status: "queued", crashes: 1 });
    },
  );

  test("a task of 12 s, killed in the midst of it, is begun again before its lease would have ended, and completes, with the defaults", async () => {
    const { cwd, env, words, create, localKey } = await openHome({ "nap.ts": nap("idempotent: true,") });
    const { engine, taskId } = await create("nap", { ms: 12_000 });
    startMeanwhile([...words, "_work"], { cwd, env });
    const held = await taskWhen(
      () => engine.get(localKey, taskId),
      (task) => task.status === "working",
    );
    const heldAt = performance.now();
    await startHttp(words, { cwd, env });
    await wait(Math.max(0, 1_500 - (performance.now() - heldAt)));
    process.kill(Number(!isTerminal(held) && held.lease?.worker.split("|")[2]), "SIGKILL");
    const killedAt = performance.now();
    const task = await engine.wait(localKey, taskId);
    const tookMs = performance.now() - killedAt;
    process.stdout.write(`a task of 12 s completed ${Math.round(tookMs)} ms after its process was killed\n`);
    expect(task).toMatchObject({ status: "completed", fence: 2, crashes: 1 });
    // With the lease of 30 s to wait for it would be 42 s.
    expect(tookMs).toBeLessThan(36_000);
  });
});

describe("a command that is a danger to its process", () => {
  test("F06 it is given up after three attempts, and its hundred neighbours are unharmed", async () => {
    const folder = temporaryFolder();
    const { engine, create } = await openStage(folder);
    const server = await startWorker(folder, 5_000);
    const poison = await Promise.all(
      casesOf(["abort", "end", "buffers", "heap"] as const, 0, 2).map((how) => create("poison", { how })),
    );
    const unsafe = await create("poisonUnsafe", { how: "abort" });
    const exiting = await create("poison", { how: "exit" });
    const good = await Promise.all(
      Array.from({ length: 100 }, (_, at) => create("safe", { key: `good ${at}`, ms: 10 })),
    );
    for (const { taskId } of good)
      expect(await engine.wait("local:ada", taskId)).toMatchObject({ status: "completed", crashes: 0 });
    for (const { taskId } of poison) {
      const task = await engine.wait("local:ada", taskId);
      expect(task).toMatchObject({ status: "failed", fence: 3, outcome: { cause: "interrupted" } });
      expect(task.statusMessage).toMatch(
        /^It(s process ended by itself| used more than \d+ MB of memory and was ended).*Given up after 3 attempts\.$/,
      );
    }
    expect(await engine.wait("local:ada", unsafe.taskId)).toMatchObject({
      status: "failed",
      fence: 1,
      statusMessage: expect.stringContaining("Outcome unknown"),
    });
    expect(await engine.wait("local:ada", exiting.taskId)).toMatchObject({
      status: "failed",
      fence: 1,
      statusMessage: expect.stringContaining("process.exit(3)"),
    });
    expect(server.exitCode ?? server.signalCode).toBeNull();
  });

  test("it ignores its cancel: it is killed, and all it has started with it", async () => {
    const folder = temporaryFolder();
    const { engine, create } = await openStage(folder);
    await startWorker(folder, 5_000);
    const pidFile = path.join(folder, "pids.json");
    const { taskId } = await create("deaf", { pidFile, isDeaf: true });
    const pids = await waitFor(() => readPids(pidFile));
    expect(pids.map(isRunning)).toEqual([true, true]);
    const cancelledAt = performance.now();
    expect(await engine.cancel("local:ada", taskId)).toBe(true);
    await waitFor(() => !pids.some(isRunning));
    process.stdout.write(
      `an isolated command that ignored its cancel was gone after ${Math.round(performance.now() - cancelledAt)} ms\n`,
    );
    expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "cancelled" });
  });

  test("its worker is killed: it ends too, and all it has started with it", async () => {
    const folder = temporaryFolder();
    const { create } = await openStage(folder);
    const worker = await startWorker(folder, 5_000);
    const pidFile = path.join(folder, "pids.json");
    await create("deaf", { pidFile, isDeaf: false });
    const pids = await waitFor(() => readPids(pidFile));
    worker.kill("SIGKILL");
    await waitFor(() => !pids.some(isRunning));
  });
});

/** Which processes a command has written down; undefined as long as it has not. */
function readPids(file: string): number[] | undefined {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text === "" ? undefined : (JSON.parse(text) as number[]);
}

test("F07 SIGTERM: what is safe is given back at once; what is not may end in its time, and is interrupted after it; exit 0", async () => {
  await Promise.all(
    [["_work"], ["serve", "--http", "--port", "0"]].map(async (verb) => {
      const { cwd, env, words, create, localKey } = await openHome({
        "nap.ts": nap("idempotent: true,"),
        "once.ts": nap(""),
      });
      const short = await create("once", { ms: 4_000 });
      const { engine } = short;
      const long = await create("nap", { ms: 120_000 });
      const unsafe = await create("once", { ms: 120_000 });
      const server = startMeanwhile([...words, ...verb], { cwd, env });
      for (const { taskId } of [short, long, unsafe])
        await taskWhen(
          () => engine.get(localKey, taskId),
          (task) => task.status === "working",
        );
      server.child.kill("SIGTERM");
      expect(await server.exited).toBe(0);
      expect(await engine.get(localKey, short.taskId)).toMatchObject({ status: "completed", attempts: 1 });
      expect(await engine.get(localKey, long.taskId)).toMatchObject({
        status: "queued",
        attempts: 0,
        crashes: 0,
        lease: undefined,
      });
      expect(await engine.get(localKey, unsafe.taskId)).toMatchObject({
        status: "failed",
        outcome: { cause: "interrupted" },
      });
    }),
  );
});

const strace = spawnSync("strace", ["-V"]).status === 0;
test.skipIf(!strace)(
  `F12 an fsync that fails: nothing is acknowledged that is not there${strace ? "" : " (not run: no strace)"}`,
  async () => {
    const folder = temporaryFolder();
    const before = await openStage(folder);
    const failing = [
      "strace",
      "-f",
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      "trace=fsync,fdatasync",
      "-e",
      "inject=fsync,fdatasync:error=EIO:when=8+",
    ];
    const tasks = await Promise.all(
      Array.from({ length: 12 }, (_, at) => before.create("safe", { key: `k${at}`, ms: 20 })),
    );
    const broken = await startWorker(folder, 1_000, failing);
    await waitFor(() => tasks.some((_, at) => attemptsOf(folder, `k${at}`, "finish").length > 0));
    await wait(3_000);
    const seen = await Promise.all(tasks.map(({ taskId }) => before.engine.get("local:ada", taskId)));
    const counts = Object.entries(Object.groupBy(seen, (task) => task.status)).map(
      ([status, all]) => `${all?.length} ${status}`,
    );
    process.stdout.write(
      `F12: with fsync failing the worker ${broken.exitCode === null ? "lives on" : `ended (${broken.exitCode})`}; ${counts.join(", ")}\n`,
    );
    broken.kill("SIGKILL");
    await startWorker(folder, 1_000);
    for (const [at, { taskId }] of tasks.entries()) {
      const task = await before.engine.wait("local:ada", taskId);
      expect(task.status).toBe("completed");
      const first = seen[at];
      if (first !== undefined && isTerminal(first)) expect(task).toEqual(first);
    }
    const db = new Database(path.join(folder, "tasks.db"), { readonly: true });
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    db.close();
  },
);

describe.each(stores)("on %s", (_name, open) => {
  test("F27 of fifty cancels at once exactly one is the one", async () => {
    const store = await open();
    const engine = engineOn(store);
    const { taskId } = await createOn(engine, "safe");
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) => engine.cancel("local:ada", taskId, `cancel ${at}`)),
    );
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await engine.get("local:ada", taskId)).toMatchObject({
      status: "cancelled",
      version: 2,
      statusMessage: `cancel ${answers.indexOf(true)}`,
    });
  });

  test(
    "F28 a result against a cancel: one of them wins, and the canceller is told which",
    async () => {
      const store = await open();
      const engine = engineOn(store);
      const wins = { cancel: 0, result: 0 };
      for (let round = 0; round < rounds.cancelRaces; round++) {
        const { taskId } = await createOn(engine, "safe");
        const claimed = await store.claim({
          project: "chaos",
          worker: "w",
          leaseMs: 30_000,
          taskId,
        });
        const claim = { taskId, fence: claimed?.fence ?? -1 };
        const settle = async () => {
          for (let turn = 0; turn < round % 16; turn++) await Promise.resolve();
          return await store.settle(claim, completed);
        };
        const [isCancelled, isSettled] = await Promise.all([engine.cancel("local:ada", taskId), settle()]);
        expect([isCancelled, isSettled].filter(Boolean)).toHaveLength(1);
        const task = await engine.get("local:ada", taskId);
        expect(task.status).toBe(isCancelled ? "cancelled" : "completed");
        expect(task.version).toBe(3);
        wins[isCancelled ? "cancel" : "result"] += 1;
        if (round % 100 === 99) await engine.prune("local:ada");
      }
      expect(Math.min(wins.cancel, wins.result)).toBeGreaterThan(0);
    },
    15 * minutes,
  );

  test("F29 a result is there until its time is over, then it looks like one that never was; what runs never expires", async () => {
    const clock = new FakeClock();
    const store = await open(clock);
    const engine = engineOn(store, clock);
    const { taskId } = await createOn(engine, "safe", { ttlMs: 50 });
    const claimed = await store.claim({ project: "chaos", worker: "w", leaseMs: 30_000 });
    clock.advance(60_000);
    await store.sweep();
    expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "working" });
    expect(await store.settle({ taskId, fence: claimed?.fence ?? -1 }, completed)).toBe(true);
    clock.advance(49);
    expect(await store.sweep()).toBe(0);
    expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "completed" });
    clock.advance(1);
    expect(await wordsOf(engine.get("local:ada", taskId))).toBe(await wordsOf(engine.get("local:ada", randomUUID())));
    expect((await engine.list("local:ada")).tasks).toEqual([]);
    expect(await store.sweep()).toBe(1);
  });

  test("F30 a clock set an hour ahead, then two hours back: no living worker is interrupted, no result is gone too early", async () => {
    const clock = new JumpingClock();
    const store = await open(clock);
    const engine = engineOn(store, clock);
    const ended = await createOn(engine, "safe");
    const claimed = await store.claim({ project: "chaos", worker: "w", leaseMs: 30_000 });
    await store.settle({ taskId: ended.taskId, fence: claimed?.fence ?? -1 }, completed);
    const running = await createOn(engine, "unsafe");
    await store.claim({ project: "chaos", worker: "living", leaseMs: 30_000 });
    const stopHeartbeat = store.keepLeases("living", 30_000, 10_000);
    const sweeper = startSweeper(store, clock);
    for (const jumpMs of [0, 60 * minutes, -120 * minutes]) {
      clock.offset += jumpMs;
      await pass(clock, 120);
      expect(await engine.get("local:ada", running.taskId)).toMatchObject({ status: "working", fence: 1, crashes: 0 });
      expect(await engine.get("local:ada", ended.taskId)).toMatchObject({ status: "completed" });
    }
    sweeper.stop();
    await stopHeartbeat();
  });

  test("F30 a clock set an hour ahead: a result with ten minutes to live is there for its ten minutes, at every look, and gone after them", async () => {
    const clock = new JumpingClock();
    const store = await open(clock);
    const engine = engineOn(store, clock);
    const { taskId } = await createOn(engine, "safe", { ttlMs: 10 * minutes });
    const claimed = await store.claim({ project: "chaos", worker: "w", leaseMs: 30_000 });
    await store.settle({ taskId, fence: claimed?.fence ?? -1 }, completed);
    // Two who look after it: the jump counts once.
    const sweepers = [startSweeper(store, clock), startSweeper(store, clock)];
    await pass(clock, 60);
    clock.offset += 60 * minutes;
    expect(await engine.get("local:ada", taskId), "before anybody has noticed").toMatchObject({ status: "completed" });
    for (let second = 1; second < 9 * 60; second++) {
      await pass(clock, 1);
      expect(await engine.get("local:ada", taskId), `after ${second} s`).toMatchObject({ status: "completed" });
    }
    await pass(clock, 120);
    for (const sweeper of sweepers) sweeper.stop();
    await expect(engine.get("local:ada", taskId)).rejects.toThrow(UnknownTask);
    expect(await store.sweep(), "nothing is left to remove").toBe(0);
  });

  test("F30 a clock set two hours back: what is queued is run at once, and no result lives longer than its time from now", async () => {
    const clock = new JumpingClock();
    const store = await open(clock);
    const engine = engineOn(store, clock);
    const ended = await createOn(engine, "safe", { ttlMs: 10 * minutes });
    const claimed = await store.claim({ project: "chaos", worker: "w", leaseMs: 30_000 });
    await store.settle({ taskId: ended.taskId, fence: claimed?.fence ?? -1 }, completed);
    const queued = await createOn(engine, "safe");
    const sweeper = startSweeper(store, clock);
    await pass(clock, 1);
    clock.offset -= 120 * minutes;
    await pass(clock, 2);
    expect(await store.claim({ project: "chaos", worker: "w", leaseMs: 30_000 })).toMatchObject({
      taskId: queued.taskId,
    });
    await pass(clock, 11 * 60);
    sweeper.stop();
    await expect(engine.get("local:ada", ended.taskId)).rejects.toThrow(UnknownTask);
  });

  test("two callers with 500 tasks each never meet, by any verb; a foreign id is answered as a made-up one", {
    timeout: minutes,
  }, async () => {
    const store = await open();
    const engine = engineOn(store);
    const own: Record<string, string[]> = { "local:ada": [], "local:bob": [] };
    for (let at = 0; at < 500; at++)
      for (const caller of ["local:ada", "local:bob"])
        own[caller]?.push((await createOn(engine, at % 2 === 0 ? "safe" : "asks", { caller })).taskId);
    await answerable(store);
    for (const [caller, other] of [
      ["local:ada", "local:bob"],
      ["local:bob", "local:ada"],
    ] as const) {
      const listed: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await engine.list(caller, { limit: 100, ...(cursor !== undefined && { cursor }) });
        listed.push(...page.tasks.map((task) => task.taskId));
        cursor = page.nextCursor;
        if (cursor !== undefined)
          await expect(engine.list(other, { cursor })).rejects.toThrow("`cursor` is not one of ours");
      } while (cursor !== undefined);
      expect(listed.toSorted()).toEqual(own[caller]?.toSorted());
      for (const verb of verbs(engine)) {
        const unknown = await wordsOf(verb(caller, randomUUID()));
        for (const taskId of (own[other] ?? []).slice(-rounds.foreignTasks))
          expect(await wordsOf(verb(caller, taskId))).toBe(unknown);
      }
    }
    for (const taskId of own["local:ada"] ?? []) expect(isTerminal(await engine.get("local:ada", taskId))).toBe(false);
    await engine.cancel("local:ada", own["local:ada"]?.[0] ?? "");
    expect([await engine.prune("local:bob"), await engine.prune("local:ada")]).toEqual([0, 1]);
  });
});

const verbs = (engine: ReturnType<typeof engineOn>) => [
  (caller: string, taskId: string) => engine.get(caller, taskId),
  (caller: string, taskId: string) => engine.wait(caller, taskId),
  (caller: string, taskId: string) => engine.cancel(caller, taskId),
  (caller: string, taskId: string) => engine.answer(caller, taskId, { q1: { action: "accept", content: {} } }),
];

/** Leaves some of the tasks with an open question, so that there is something to answer. */
async function answerable(store: Store): Promise<void> {
  for (let at = 0; at < 20; at++) {
    const task = await store.claim({ project: "chaos", worker: "w", leaseMs: 30_000 });
    if (task !== undefined)
      await store.ask({ taskId: task.taskId, fence: task.fence }, { message: "?", schema: {}, isConfirmation: false });
  }
}

/** All that can be seen of an error. */
async function wordsOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("it was answered"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(UnknownTask);
  return JSON.stringify([String(error), { ...(error as object) }]);
}

async function createOn(
  engine: ReturnType<typeof engineOn>,
  kind: "safe" | "unsafe" | "asks",
  more: { caller?: string; ttlMs?: number } = {},
): Promise<Task> {
  const entry = entryOf(kind);
  if (entry === undefined) throw new Error(`There is no command ${kind}.`);
  return (
    await engine.create({
      entry,
      input: { key: "k", ms: 1 },
      caller: "local:ada",
      reason: "test",
      isNew: true,
      ...more,
    })
  ).task;
}

/**
 * A worker and a sweeper in this very process; it has the usual lease itself, and expects others to renew within this
 * one.
 */
function startHere(store: Store, folder: string, judgedLeaseMs: number): () => Promise<void> {
  const worker = new Worker({
    store,
    dispatcher: new StoreDispatcher(store),
    history: new History(store, systemClock),
    find: entryOf,
    clock: systemClock,
    log: silentLog,
    project: "chaos",
    worker: createWorkerName(),
    home: folder,
    config: {},
    isDebug: false,
  });
  const sweeper = new Sweeper({
    store,
    clock: systemClock,
    log: silentLog,
    isDead: (name) => isKnownDead(name),
    leaseMs: judgedLeaseMs,
  });
  worker.start();
  sweeper.start();
  return async () => {
    sweeper.stop();
    await worker.stop();
  };
}

/**
 * Stops a process where it does not hold the file: frozen in the middle of a write it keeps everybody else from
 * writing, for as long as it lasts.
 */
async function stopBetweenWrites(child: ChildProcess, file: string): Promise<void> {
  const db = new Database(file, { timeout: 0 });
  for (let tries = 0; tries < 100; tries++) {
    child.kill("SIGSTOP");
    // The signal is on its way; a lock that is still there after this is held by a process that stands still.
    await wait(5);
    try {
      db.exec("begin immediate; rollback");
      break;
    } catch {
      child.kill("SIGCONT");
      await wait(1);
    }
  }
  db.close();
}

function startSweeper(store: Store, clock: FakeClock): Sweeper {
  const sweeper = new Sweeper({
    store,
    clock,
    log: silentLog,
    isDead: () => false,
  });
  sweeper.start();
  return sweeper;
}

/** Lets seconds pass, one at a time, so that what waits for one of them is done before the next. */
async function pass(clock: FakeClock, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A clock whose wall time is set while its steady time goes on. */
class JumpingClock extends FakeClock {
  offset = 0;

  override now(): number {
    return super.now() + this.offset;
  }
}

const nap = (more: string) => `
import { setTimeout as wait } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Takes its time",
  input: z.object({ ms: z.number() }),
  ${more}
  async run({ ms }, task) {
    await wait(ms, undefined, { signal: task.signal });
    return { slept: ms };
  },
});
`;

/** A home and a project of its own for the real executable, and a way to make tasks in it. */
async function openHome(files: Record<string, string>) {
  const home = temporaryFolder();
  const cwd = temporaryFolder();
  const folder = writeFiles(path.join(cwd, "commands"), files);
  const env = { MEANWHILE_HOME: home };
  const words = ["--commands", folder, "--no-bundled"];
  const settings = await loadSettings({
    cwd,
    env: { ...process.env, ...env },
    flags: { commands: [folder], bundled: false },
  });
  const tasks = await openTasks(settings);
  onTestFinished(() => tasks.close());
  const create = async (name: string, input: object) => {
    const command = defineCommand({ summary: "x", idempotent: name === "nap", run: () => ({}) });
    const entry = { command, toolName: name, path: [name], file: path.join(folder, `${name}.ts`) };
    const { task } = await tasks.engine.create({ entry, input, caller: tasks.localKey, reason: "test", isNew: true });
    return { engine: tasks.engine, taskId: task.taskId };
  };
  return { cwd, env, words, create, localKey: tasks.localKey };
}
